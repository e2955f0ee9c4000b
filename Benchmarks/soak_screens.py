"""Draws the screens of soak.py: ten films of a phone's screen, one capture a second, as JPEGs with 4:2:0 colours.

They are like sessions of the corpus in content, JPEG quality, bytes, and in how many captures differ from the one
before: three films of reading (s01), three of an idle user (s02), two of typing (s04), two of scrolling (s08). These
are the shares of capacity.MIX. A film has two minutes, and repeats.
"""

import os
import random

from PIL import Image, ImageDraw, ImageFont
from matplotlib import font_manager

SIZE = WIDTH, HEIGHT = 750, 1334
CAPTURES = 120
HEADER, KEYBOARD = 112, 880
WORDS = ("a batch of captured screens is complete when its name is in the folder, and each session keeps the time of "
         "every picture: the worker reads, decodes, encodes and publishes (durably) what a recorder has written; "
         "Reading takes longer than scrolling, 40 words a quarter of a minute. See Chapter 2.6 or version 3.11").split()
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", " ")
INK, GREY, BLUE = (33, 37, 41), (222, 226, 230), (0, 105, 200)


def font(size, name="DejaVu Sans"):
    return ImageFont.truetype(font_manager.findfont(name), size)


TEXT, TITLE, CODE = font(27), font(44), font(24, "DejaVu Sans Mono")


def sentence(dice, count):
    return " ".join(dice.choices(WORDS, k=count))


def article(dice, height, photos):
    """Returns a page of headings, paragraphs, boxes of code, and photos."""
    image = Image.new("RGB", (WIDTH, height), "white")
    page, top = ImageDraw.Draw(image), 30
    while top < height:
        kind = dice.random()
        if kind < 0.15:
            page.text((30, top + 20), sentence(dice, 3), INK, TITLE)
            top += 110
        elif kind < 0.35:
            lines = dice.randint(3, 9)
            page.rectangle((30, top, WIDTH - 30, top + lines * 34 + 20), (238, 255, 204), (170, 204, 153))
            for line in range(lines):
                page.text((44, top + 10 + line * 34), ">>> " + sentence(dice, 5), dice.choice((INK, BLUE)), CODE)
            top += lines * 34 + 50
        elif kind < 0.35 + photos:
            # Smooth colours with some grain.
            photo = Image.frombytes("RGB", (9, 6), dice.randbytes(9 * 6 * 3)).resize((690, 450), Image.BICUBIC)
            grain = Image.frombytes("L", (690, 450), dice.randbytes(690 * 450)).convert("RGB")
            image.paste(Image.blend(photo, grain, 0.12), (30, top))
            top += 480
        else:
            for _ in range(dice.randint(2, 6)):
                page.text((30, top), sentence(dice, 7), INK, TEXT)
                top += 46
            top += 40
    return image


def screen(page, top, title):
    """Returns a page below the header of the application."""
    image = page.crop((0, top - HEADER, WIDTH, top - HEADER + HEIGHT))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDTH, HEADER), (248, 249, 250))
    draw.text((30, 40), f"‹   {title}", INK, TEXT)
    return image


def moving(dice, rests, steps, photos):
    """Yields the screens of a user who rests for some captures, and scrolls for some; at the end a new page opens."""
    page = top = None
    captures = 0
    while True:
        if captures % 45 == 0 or top > page.height - 2 * HEIGHT:
            page, top, title = article(dice, 9_000, photos), HEADER, sentence(dice, 2)
        image = screen(page, top, title)
        for _ in range(dice.randint(*rests)):
            yield image
            captures += 1
        top += dice.randint(*steps)


def reading(dice):
    return moving(dice, (1, 3), (150, 700), 0)


def scrolling(dice):
    return moving(dice, (1, 4), (400, 1_300), 0.12)


def idle(dice):
    """Yields a screen whose clock changes once a minute."""
    page, _ = form(dice)
    for minute in range(60):
        image = screen(page, HEADER, f"Checkout                    09:{minute:02}")
        for _ in range(60):
            yield image


def form(dice):
    """Returns a page with fields, and the top of each field."""
    page = Image.new("RGB", SIZE, (248, 249, 250))
    draw, tops = ImageDraw.Draw(page), range(HEADER + 40, HEIGHT, 150)
    for top in tops:
        draw.text((30, top), sentence(dice, 5), INK, TEXT)
        field(draw, top, "", GREY)
    draw.rectangle((0, 0, WIDTH, HEADER), (52, 58, 64))
    draw.text((30, 40), "Synced just now", "white", TEXT)
    return page, tops


def field(draw, top, text, colour):
    draw.rounded_rectangle((30, top + 42, WIDTH - 30, top + 112), 8, "white", colour, 3)
    draw.text((46, top + 60), text, INK, TEXT)


def typing(dice):
    """Yields a form above a keyboard: a key a second, and the next field after some words."""
    while True:
        page, tops = form(dice)
        draw = ImageDraw.Draw(page)
        for top in tops[:5]:
            text = sentence(dice, 3)
            for count in range(1, len(text) + 1):
                field(draw, top, text[:count], BLUE)
                keyboard(draw, text[count - 1].lower())
                yield page.copy()
            field(draw, top, text, GREY)


def keyboard(draw, pressed):
    draw.rectangle((0, KEYBOARD, WIDTH, HEIGHT), (209, 212, 219))
    for row, keys in enumerate(KEYS):
        width = 400 if keys == " " else 68
        left = (WIDTH - len(keys) * (width + 6)) // 2
        for column, key in enumerate(keys):
            x, y = left + column * (width + 6), KEYBOARD + 30 + row * 108
            draw.rounded_rectangle((x, y, x + width, y + 90), 10, (130, 135, 145) if key == pressed else "white")
            draw.text((x + width // 2 - 9, y + 26), key, INK, TEXT)


# The films of each tenth of the sessions: the corpus session that they are like, its screens, and the JPEG quality.
FILMS = [("s01", reading, 80)] * 3 + [("s02", idle, 30)] * 3 + [("s04", typing, 80)] * 2 + [("s08", scrolling, 30)] * 2


def draw(folder):
    """Returns the files of each film's captures, in order; equal captures are one file."""
    films = []
    for number, (_, screens, quality) in enumerate(FILMS):
        captures, before, path = [], None, None
        for at, image in zip(range(CAPTURES), screens(random.Random(number))):
            if image is not before:
                path = os.path.join(folder, f"{number}-{at:03}.jpg")
                image.save(path, quality=quality, subsampling="4:2:0")
            before = image
            captures.append(path)
        films.append(captures)
    return films


def facts(films):
    """Yields for each kind of film: name, corpus session, share, JPEG quality, bytes of a capture, share of changed ones."""
    for kind in dict.fromkeys(FILMS):
        some = [film for each, film in zip(FILMS, films) if each == kind]
        sizes = [os.path.getsize(path) for film in some for path in film]
        changes = sum(path != before for film in some for before, path in zip(film, film[1:]))
        session, screens, quality = kind
        yield screens.__name__, session, len(some) / len(films), quality, sum(sizes) / len(sizes), changes / len(sizes)
