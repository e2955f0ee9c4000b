"""Mutates a batch.json into one that no recorder writes."""

import json

NUMBERS = ["0", "-0", "-1", "0.5", "1e400", "-1e400", "1e-400", "1e999999999", "9" * 400, "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1767859512340.0", "1767859512340e0",
           "17678595123400e-1", "978307199999", "4102444800000", "NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1",
           "0x10", "2147483648", "4294967296", "1000001", "1e9", "16.0001", "1e-9", "0." + "0" * 500 + "1"]
TEXTS = ['""', '"."', '".."', '"../up"', '"/etc/passwd"', r'"a\u0000b"', r'"\ud800"', r'"\udc00\ud800"', '"ä☃\U0001f600"',
         '"' + "x" * 129 + '"', '"' + "y" * 70000 + '"', r'"\x"', '"#12345"', '"#gggggg"', '"#FFFFFF"', '"BGRA"', '"BGR10A8"',
         '"straight"', '"onChange"', '"0.jpg"', '"batch.json"', '"unterminated', '"\x01"', r'"\u12"']
KEYS = ["version", "session", "frames", "file", "timeMs", "masks", "x", "y", "width", "height", "scale", "maskColor",
        "color", "pixels", "format", "bytesPerRow", "alpha", "alphaBytesPerRow", "layers", "opacity", "z", "intervalMs",
        "endMs", "final", "capture", "metadata", "Masks", "redactions", "maskColour", "größe", "", "__proto__", "a\u0000"]
RECTANGLE = '{"x":%s,"y":%s,"width":%s,"height":%s}'


class Raw(str):
    """JSON text that is written as it is, valid or not."""


def absurd(rng):
    choice = rng.random()
    if choice < 0.4:
        return Raw(rng.choice(NUMBERS))
    if choice < 0.65:
        return Raw(rng.choice(TEXTS))
    if choice < 0.75:
        return Raw(rng.choice(["null", "true", "false", "[]", "{}", "[[]]", "{\"\":{}}", "", "nul", "[1,]", "{\"a\":1,}"]))
    if choice < 0.85:
        depth = rng.choice([63, 64, 65, 1000, 100_000])
        return Raw("[" * depth + "]" * rng.choice([depth, depth - 1, 0]) if rng.random() < 0.5 else
                   '{"a":' * depth + "1" + "}" * depth)
    rectangle = Raw(RECTANGLE % tuple(rng.choice(NUMBERS + ["1", "10", "100"] * 12) for _ in range(4)))
    return Raw("[" + ",".join([rectangle] * rng.choice([1, 2, 1000])) + "]") if rng.random() < 0.7 else rectangle


def pairs(value):
    """Returns objects as lists of pairs, so that a key can occur twice."""
    if isinstance(value, dict):
        return ("object", [[key, pairs(inner)] for key, inner in value.items()])
    if isinstance(value, list):
        return ("array", [pairs(inner) for inner in value])
    return Raw(json.dumps(value))


def places(value):
    """Returns every object and array in a value."""
    if isinstance(value, tuple):
        yield value
        for inner in value[1]:
            yield from places(inner[1] if value[0] == "object" else inner)


def text(value):
    if not isinstance(value, tuple):
        return value
    if value[0] == "array":
        return "[" + ",".join(map(text, value[1])) + "]"
    return "{" + ",".join(json.dumps(key) + ":" + text(inner) for key, inner in value[1]) + "}"


def layers(rng, value):
    """Turns a frame into a picture of two layers."""
    return ("object", [
        ["timeMs", Raw(str(1767859512340 + rng.randrange(5000)))], ["width", Raw("180")], ["height", Raw("320")],
        ["layers", ("array", [
            ("object", [["file", Raw(json.dumps(f"{rng.randrange(5)}.jpg"))], ["x", Raw("1")], ["opacity", Raw("0.5")]]),
            ("object", [["file", Raw(json.dumps(f"{rng.randrange(5)}.jpg"))], ["width", Raw("90")], ["height", Raw("9")]]),
        ])]])


def absurd_description(rng, data):
    try:
        whole = pairs(json.loads(data))
    except (ValueError, RecursionError):  # earlier mutations made the value invalid
        return data[:rng.randrange(len(data) + 1)]
    for _ in range(rng.choice([1, 1, 2, 4])):
        inside = [place for place in places(whole)]
        if not inside or rng.random() < 0.02:
            whole = absurd(rng)
            continue
        kind, members = rng.choice(inside)
        choice = rng.random()
        if kind == "object":
            if choice < 0.45 and members:
                rng.choice(members)[1] = absurd(rng)
            elif choice < 0.75:
                members.append([rng.choice(KEYS), absurd(rng)])
            elif choice < 0.85 and members:
                members.append(list(rng.choice(members)))
            elif members:
                rng.choice(members)[0] = rng.choice(KEYS)
        elif members:
            at = rng.randrange(len(members))
            if choice < 0.3:
                members[at] = absurd(rng)
            elif choice < 0.6:
                members[at] = layers(rng, members[at])
            elif choice < 0.8:
                members.extend([members[at]] * rng.choice([1, 2, 50]))
            else:
                del members[at]
    result = text(whole).encode(errors="surrogatepass")
    return rng.choice([b"", b"", b"", b"", b"", b"", b"\xef\xbb\xbf", b" " * 9]) + result + rng.choice([b"", b"", b"", b"\n", b"\0"])
