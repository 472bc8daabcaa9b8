//! Tables for people.

use comfy_table::{presets::UTF8_HORIZONTAL_ONLY, CellAlignment, Table, TableComponent};

/// A table whose columns from `numbers` on hold numbers.
pub fn table(numbers: usize, heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).set_header(heading);
    for component in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(component);
    }
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
