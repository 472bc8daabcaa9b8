"""BERT's tokens of a text: uncased words and punctuation, cut into pieces that the vocabulary has."""

import unicodedata

LONGEST = 100


def _control(char):
    return char not in "\t\n\r" and unicodedata.category(char).startswith("C")


def _space(char):
    return char in "\t\n\r" or unicodedata.category(char).startswith("Z")


def _punctuation(char):
    # All of ASCII that is neither letter, digit nor space, including Unicode's symbols.
    return 33 <= ord(char) <= 47 or 58 <= ord(char) <= 64 or 91 <= ord(char) <= 96 or 123 <= ord(char) <= 126 or (
        unicodedata.category(char).startswith("P")
    )


RANGES = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def _chinese(char):
    return any(first <= ord(char) <= last for first, last in RANGES)


def _words(text):
    """Words and punctuation, in lower case and without accents."""
    kept = []
    for char in text:
        if char in "\0\ufffd" or _control(char):
            continue
        kept.append(f" {char} " if _chinese(char) else " " if _space(char) else char)
    plain = unicodedata.normalize("NFD", "".join(kept))
    # Letter by letter: the end of a word changes nothing.
    plain = "".join(char.lower() for char in plain if unicodedata.category(char) != "Mn")
    word = ""
    for char in plain:
        if _space(char) or _punctuation(char):
            if word:
                yield word
            word = ""
            if not _space(char):
                yield char
        else:
            word += char
    if word:
        yield word


class WordPiece:
    def __init__(self, vocabulary):
        with open(vocabulary, encoding="utf-8") as file:
            self.numbers = {piece.rstrip("\n"): number for number, piece in enumerate(file)}
        self.first, self.last, self.unknown = (self.numbers[name] for name in ("[CLS]", "[SEP]", "[UNK]"))

    def encode(self, text, most):
        """The numbers of a text's pieces, at most `most` with the first and the last."""
        numbers = []
        for word in _words(text):
            numbers += self._pieces(word)
            if len(numbers) >= most - 2:
                break
        return [self.first, *numbers[: most - 2], self.last]

    def _pieces(self, word):
        if len(word) > LONGEST:
            return [self.unknown]
        numbers, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else f"##{word[start:end]}"
                if piece in self.numbers:
                    numbers.append(self.numbers[piece])
                    start = end
                    break
            else:
                return [self.unknown]
        return numbers
