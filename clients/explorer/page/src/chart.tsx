/** Curves and bars over time, by uPlot, in the colours of the page; a text describes them to readers who do not see them. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Series {
  label: string;
  values: (number | null)[];
  /** A name of a colour in style.css. */
  colour: "accent" | "good" | "bad" | "quiet";
  bars?: boolean;
  dashed?: boolean;
  /** Keeps its value until the next point. */
  stepped?: boolean;
}

interface Properties {
  /** A description of its contents. */
  label: string;
  /** In seconds since 1970. */
  times: number[];
  series: Series[];
  /** Without it they are whole numbers. */
  format?: (value: number) => string;
  /** From 0 to this, or as far as the values go. */
  top?: number;
  height?: number;
}

/** A moment as the axis has room for it. */
const clock = (at: number, span: number): string =>
  new Date(at * 1_000).toLocaleString(
    "en-GB",
    span < 36 * 3_600
      ? { hour: "2-digit", minute: "2-digit", ...(span < 900 ? { second: "2-digit" } : {}) }
      : span < 300 * 86_400
        ? { day: "numeric", month: "short" }
        : { month: "short", year: "numeric" },
  );

/** Steps of an axis of whole numbers. */
const WHOLE = Array.from({ length: 10 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
const short = new Intl.NumberFormat("en-GB", { notation: "compact" });
/** Nothing where the one below says the same. */
const labels = (values: number[], format: (value: number) => string) => values.map(format).map((text, i, all) => (text === all[i - 1] ? "" : text));

function options({ series, format, top, height = 200 }: Properties, host: HTMLElement): uPlot.Options {
  const style = getComputedStyle(host);
  const ink = style.color;
  // Custom properties are read as they are written: a probe has them as colours.
  const colour = (name: string) => {
    const probe = document.createElement("i");
    probe.className = `ink-${name}`;
    host.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const grid = { stroke: colour("line"), width: 1 };
  return {
    width: host.clientWidth,
    height,
    padding: [8, 8, 0, 0],
    legend: { live: true },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, least, most) => [Math.min(0, least), top ?? Math.max(most * 1.05, 1e-9)] } },
    axes: [
      { stroke: ink, grid: { show: false }, ticks: grid, space: 90, values: (_, moments) => moments.map((at) => clock(at, moments.at(-1)! - moments[0]!)) },
      { stroke: ink, grid, ticks: { show: false }, size: 56, ...(format ? {} : { incrs: WHOLE }), values: (_, values) => labels(values, format ?? short.format) },
    ],
    series: [
      { value: (_, at) => (at == null ? "–" : new Date(at * 1_000).toLocaleString("en-GB", { hour: "2-digit", minute: "2-digit", day: "2-digit", month: "short" })) },
      ...series.map((one): uPlot.Series => {
        const stroke = colour(one.colour);
        return {
          label: one.label,
          stroke,
          width: 2,
          points: { show: false },
          value: (_, value) => (value == null ? "–" : (format ?? String)(value)),
          ...(one.bars ? { fill: stroke, width: 0, paths: uPlot.paths.bars!({ size: [0.8, 40] }) } : {}),
          ...(one.stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
          ...(one.dashed ? { dash: [5, 5], width: 1 } : {}),
        };
      }),
    ],
  };
}

export function Chart(properties: Properties) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const { times, series, label } = properties;
  const data = [times, ...series.map(({ values }) => values)] as uPlot.AlignedData;
  const shape = `${series.map(({ label, colour }) => label + colour)}${properties.top}`;
  const draw = () => {
    plot.current?.destroy();
    plot.current = new uPlot(options(properties, host.current!), data, host.current!);
  };
  useEffect(() => {
    draw();
    return () => plot.current?.destroy();
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [properties.times, properties.series]);
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    const resized = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry!.contentRect.width);
      if (plot.current && Math.abs(plot.current.width - width) > 1) plot.current.setSize({ width, height: plot.current.height });
    });
    resized.observe(host.current!);
    const theme = () => latest.current();
    addEventListener("themechange", theme);
    const media = matchMedia("(prefers-color-scheme: dark)");
    media.addEventListener("change", theme);
    return () => {
      resized.disconnect();
      removeEventListener("themechange", theme);
      media.removeEventListener("change", theme);
    };
  }, []);
  return <div class="chart" ref={host} role="img" aria-label={label} />;
}
