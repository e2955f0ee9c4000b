#!/usr/bin/python3
"""Draws pictures of words that a person types letter by letter, one picture a letter: draw_typing.py FOLDER SIZE SEED COUNT [--caret]

SIZE is that of the letters, in pixels. The pictures are a second apart, and named for their captures. Prints each word, and the capture
of the picture in which it is whole. The words are drawn from a list by SEED. Needs Pillow and the font DejaVu Sans.
"""
import random
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

WORDS = """able account across action address advance against agree almost already amount animal answer appear arrive autumn balance basket
before behind believe between bottle bridge bright brother build business calendar camera candle capital carry castle catch center certain
change chapter circle climb clothes coffee collect company compare complete consider contain continue corner country couple courage cover
credit current danger daughter decide degree deliver depend describe design detail develop dinner direct discover distance doctor dollar
double dream drink during eastern effect electric element energy engine enough entire escape evening exactly example except expect explain
family famous father figure finger finish flower follow foreign forest forward freedom friend garden gather general gentle govern ground
handle happen history holiday honest hospital however hundred husband imagine improve include indeed industry insect instead interest
island journey jungle kitchen ladder language lawyer leader leather lesson letter library listen machine manage market master matter measure
member memory mention message middle minute mirror modern moment money morning mother mountain movement narrow nation natural nearly
nothing notice number object observe ocean office orange organ owner paper parent partner pattern people perfect perhaps person picture
planet plastic please pocket poison position possible practice prepare present pretty prison private problem produce promise proper protect
provide public purple quality quarter question quick quiet rabbit rather reason receive record regular remember repeat report require
result return reward river rough sailor salary sample school science screen second secret section separate serious several shadow shape
shoulder silent silver simple sister smooth soldier solution special spring square station steady stomach stranger stream street strong
student subject success sudden sugar summer support surface surprise system table teacher temple through ticket together tongue toward
travel treasure trouble twenty uncle under until useful valley various village violet visit voice volume warning water weather wedding
western whether window winter without woman wonder writing yellow yesterday young""".split()
WIDTH, HEIGHT, MARGIN = 750, 1334, 40
START_MS = 1_767_859_200_000


def main():
    folder, size, seed, count = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    has_caret = "--caret" in sys.argv
    font = ImageFont.truetype("DejaVuSans.ttf", size)
    done = Image.new("RGB", (WIDTH, HEIGHT), "white")
    ImageDraw.Draw(done).text((MARGIN, MARGIN), "New message", "black", ImageFont.truetype("DejaVuSans.ttf", 30))
    x, y = MARGIN, 3 * MARGIN
    number = 0

    def save(picture, right):
        nonlocal number
        if has_caret:
            picture = picture.copy()
            ImageDraw.Draw(picture).line((right + 2, y, right + 2, y + size * 6 // 5), "blue", 2)
        picture.save(folder / f"{START_MS + 1_000 * number}.png")
        number += 1

    save(done, x)
    for word in random.Random(seed).sample(WORDS, count):
        width = font.getlength(word + " ")
        if x + width > WIDTH - MARGIN:
            x, y = MARGIN, y + size * 8 // 5
        for letters in range(1, len(word) + 1):
            picture = done.copy()
            ImageDraw.Draw(picture).text((x, y), word[:letters], "black", font)
            save(picture, x + font.getlength(word[:letters]))
        print(word, START_MS + 1_000 * (number - 1))
        done = picture
        x += int(width)
        save(done, x)


main()
