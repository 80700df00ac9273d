"""Texts with the places where they are to be cut, decided by hand before any library had cut them.

A `¦` stands before each segment but the first. White space and empty lines belong to the segment before.
"""

from collections.abc import Sequence

from annotator.stages.segmenting import Range

MARK = "¦"

PROSE: dict[str, tuple[str, ...]] = {
    "plain": (
        "The sun rose. ¦Birds began to sing.",
        "Is it true? ¦Yes! ¦It is.",
        "One sentence without an end",
        "It ends here.\n\n  ",
        "  It begins late. ¦It goes on.",
        "First line.\n¦Second line.",
        "Really?! ¦I had no idea.",
        "This is nice 😀. ¦That is not 🙁.",
        "Do you like e.e. cummings? ¦I do.",
        "It costs $5. ¦That is cheap.",
    ),
    "abbreviations": (
        "Dr. Smith met Mrs. Jones. ¦They spoke.",
        "Use a queue, e.g. Redis, for this. ¦It is fast.",
        "Some fruit (i.e. apples) is cheap. ¦Other fruit is not.",
        "See Fig. 3 for details. ¦Then read Sec. 4.",
        "He works for Acme Inc. and likes it. ¦She does not.",
        "Prof. Lee teaches at 9 a.m. on Mondays. ¦Bring a pen.",
        "The U.S. economy grew. ¦Prices fell.",
        "It was approx. 10 km away. ¦We walked.",
        "Bring pens, paper, etc. and a bag. ¦Do not be late.",
        "Smith et al. showed this in 2019. ¦Others agreed.",
        "The match was Spain vs. Italy. ¦Spain won.",
        "She lives on Elm St. near the river. ¦He does not.",
        "On Jan. 5 we met. ¦On Feb. 6 we parted.",
        "St. Petersburg is cold. ¦Rome is warm.",
        "Mr. and Mrs. Brown left at 5 p.m. ¦Nobody saw them.",
        "Gen. Grant and Lt. Col. Lee signed it. ¦The war was over.",
    ),
    "initials": (
        "J. R. R. Tolkien wrote it. ¦I read it.",
        "The book by J.K. Rowling sold well. ¦It is long.",
        "George W. Bush was president. ¦So was John F. Kennedy.",
        "A. Turing proved it. ¦K. Gödel had proved more.",
        "Plan B. is not a plan of ours.",
    ),
    "decimals": (
        "Pi is about 3.14159. ¦It never ends.",
        "Version 2.0.1 fixes this. ¦Version 2.1 does not.",
        "It grew by .5 percent. ¦Then it fell by 1.25 %.",
        "The price is 1,299.99 dollars. ¦Pay at 10.30 sharp.",
        "The address is 192.168.0.1. ¦Ping it.",
        "In section 3.2.1 we prove it. ¦In 3.2.2 we do not.",
    ),
    "ellipses": (
        "Wait... what did you say? ¦Nothing.",
        "He left... ¦Then he came back.",
        "I wonder… maybe not. ¦Let us see.",
        "It was dark . . . and cold. ¦We ran.",
        "To be continued…",
    ),
    "URLs": (
        "Visit https://example.com/a.html?q=1.5 today. ¦It is free.",
        "Go to www.example.org. ¦Then click.",
        "Write to john.doe@example.co.uk. ¦He answers.",
        "The file is C:\\data\\list.txt. ¦Open it.",
        "Edit settings.py and run manage.py check. ¦Then commit.",
        "Node.js is fast. ¦Vue.js is small.",
        "Read [the guide](https://example.com/Guide.Part.One) first. ¦Then start.",
        "Call os.path.join() twice. ¦It returns a str.",
        "Type `print(1). Then wait` at the prompt. ¦It works.",
    ),
    "quotes": (
        "“I know,” he said. ¦She left.",
        'She asked, "Why?" and left. ¦He stayed.',
        'He said, "It is late." ¦She agreed.',
        "“Stop!” he cried. ¦Nobody stopped.",
        "‘Yes.’ ¦That was all.",
        "It's Peter's. ¦It isn't Paul's.",
        'The 5" pipe broke. ¦The 6" pipe held.',
        "«Bonjour.» ¦Il est parti.",
        "The word “etc.” is Latin. ¦So is “i.e.” as well.",
    ),
    "parentheses": (
        "It works (mostly). ¦Try it.",
        "We won (hooray!) and left. ¦They cried.",
        "He paid. ¦(She did not.) ¦They left.",
        "This is known [1]. ¦That is not [2].",
        "The result is clear (see p. 5). ¦We stop here.",
        "It rained (a lot. ¦Then it stopped.",
    ),
    "German": (
        "Das ist z. B. ein Hund. ¦Er bellt.",
        "Das ist z.B. eine Katze. ¦Sie schläft.",
        "Am 3. Oktober ist frei. ¦Am 4. Oktober nicht.",
        "Herr Dr. Müller kommt. ¦Er ist da.",
        "Der Preis beträgt 1.299,99 Euro. ¦Das ist viel.",
        "Siehe S. 5 ff. und Abb. 2. ¦Dort steht es.",
        "„Komm!“, rief er. ¦Sie kam nicht.",
        "Das gilt d. h. für alle. ¦Niemand widersprach.",
        "Wir kaufen Brot, Milch usw. und gehen. ¦Es ist spät.",
        "Das 19. Jahrhundert war lang. ¦Das 20. Jahrhundert war kurz.",
        "Er wohnt in der Hauptstr. 5 in Bonn. ¦Sie auch.",
        "Karl V. war Kaiser. ¦Er dankte ab.",
        "Das sind ca. 5 km bzw. eine Stunde. ¦Wir gehen.",
    ),
    "French": ("M. Dupont est arrivé. ¦Il est parti.",),
    "Spanish": ("¿Qué hora es? ¦Son las dos.", "El Sr. García vive en EE. UU. y trabaja. ¦Está bien."),
    "Russian": ("Он пришёл в 5 ч. утра. ¦Она ушла.",),
    "Greek": ("Τι κάνεις; ¦Καλά.",),
    "CJK": (
        "你好。¦我很好。",
        "你叫什么名字？¦我叫小明！¦很高兴。",
        "他说：“今天很冷。”¦然后他走了。",
        "这是3.14。¦那是2.71。",
        "今日は良い天気です。¦散歩に行きましょう。",
        "「はい。」と彼は言った。¦私は黙った。",
        "本当ですか？¦はい、本当です！",
        "오늘은 날씨가 좋습니다. ¦산책을 갑시다.",
        "我用Node.js写的。¦It works well. ¦很好。",
        "他走了……¦后来又回来了。",
    ),
    "Arabic and Hindi": (
        "مرحبا بك. ¦كيف حالك؟ ¦أنا بخير.",
        "ذهبت إلى السوق، ثم عدت. ¦كان مغلقا!",
        "السعر 3.5 دولار. ¦هذا رخيص.",
        "यह एक कलम है। ¦वह एक किताब है।",
        "کیا حال ہے؟ ¦میں ٹھیک ہوں۔ ¦شکریہ۔",
    ),
}

MARKDOWN: dict[str, tuple[str, ...]] = {
    "lists": (
        "- Wash the rice.\n¦- Cook it. ¦Wait.\n¦- Eat.",
        "1. Open the file.\n¦2. Read it.\n¦3. Close it.",
        "You need:\n\n¦* flour\n¦* eggs\n¦* 1.5 l of milk",
        "a) One thing\n¦b) Another thing",
        "1) Stir.\n¦2) Wait for 2.5 hours. ¦Stir again.",
        "- An item\n  that goes on here.\n¦  - A part of it.\n¦- Another item.",
        "10. Ten.\n¦11. Eleven.\n\n¦The end.",
        "Before.\n¦• One.\n¦• Two.",
        "1. **Plan.** ¦Write it down.\n¦2. **Act.** ¦Do it.",
        "- [ ] Buy milk.\n¦- [x] Buy bread.",
        "> He said so. ¦He meant it.\n¦> And he went to the very end of the long and winding\n> road.",
        "Step 1: Mix. ¦Stir well.\n¦Step 2: Bake.",
        "II. The means\n¦III. The end\n¦V. The rest",
    ),
    "tables": (
        "Prices:\n\n¦| a | b |\n|---|---|\n| 1. One | 2.5 |\n| Yes. No. | x |\n\n¦That is all.",
        "| a |\n|:-:|\n| b |",
        "a | b\n--- | ---\n1 | 2\n\n¦Done. ¦Really.",
        "Use a | b for this. ¦Then stop.",
        "- An item.\n\n¦  | a | b |\n  |---|---|\n  | 1 | 2 |\n¦- Another.",
    ),
    "code": (
        "Run this:\n\n¦```python\nx = 1. \n\n# A comment. Another one.\n```\n\n¦It prints nothing. ¦Good.",
        "```\nnever closed. Really.\n\nNot at all.",
        "~~~\na. B.\n```\nc. D.\n~~~\n¦After.",
        "1. Install it:\n¦   ```sh\n   pip install x. Y\n   ```\n¦2. Run it.",
        "````\n```\nin. Side.\n```\n````\n¦Out.",
        "Like so:\n¦```\na\n```\n¦```\nb\n```",
        "See:\n\n¦    x = 1. Y\n\n    z = 2\n\n¦Then go on.",
    ),
    "formulas": (
        "We have\n\n¦$$\na = 1. B = 2.\n\nc\n$$\n\n¦So it holds. ¦Good.",
        "We have\n¦\\[\na = 1\n+ b\n\\]\n¦where b is small.",
        "$$x = 1.5. Y$$\n¦Then stop.",
        "Let $a. B$ be a set. ¦It is small.",
        "Since \\(x. Y\\) holds, we stop. ¦We rest.",
        "It costs $5 or $6. ¦That is cheap.",
        "So \\[ x = 1. Y \\] holds. ¦Good.",
    ),
    "headings": (
        "# Title\n\nIt begins. ¦It goes on.\n\n¦## Part\n\n- One.\n¦- Two.",
        "# A\n## B\n\nText. ¦More.",
        "Title\n=====\n\nText. ¦More.",
        "Text.\n\n¦### The end",
        "**Ingredients**\n\n- Milk.\n¦- Eggs.",
        "# Code\n\n```\nx\n```\n¦Done.",
        "Above. ¦Right.\n\n---\n\n¦Below.",
        "#hashtag is no heading. ¦Right.",
        "**This is bold.** ¦This is not.",
        "# Dr. Who. A life\nHe lives. ¦He dies.",
    ),
    "lines": (
        "This line is wrapped by hand because somebody wrote it in an\neditor of eighty columns. ¦It ends here.",
        "Roses are red,\n¦Violets are blue,\n¦Sugar is sweet.",
        "Dear Sir,\n¦I am writing to you. ¦Please answer.\n\n¦Yours,\n¦Ann",
        "Name: Ann\n¦Age: 5\n¦City: Bonn",
        "The fonts of the first line have to be larger than that\n¦Ann",
        "One.\r\n¦Two.\r\n\r\n¦Three.",
    ),
}


STEPS: dict[str, tuple[str, ...]] = {
    "numbers": (
        "1. Add 2 and 3. That is 5.\n¦2. Double it.\n¦3. The result is 10.",
        "Let us see.\n\n¦1) Add.\n\n¦2) Double.\n\n¦So it is 10.",
        "1. Add.\n\nThat is 5.\n\n¦2. Double.\n\nThat is 10.",
        "1. Add:\n   - 2\n   - 3\n¦2. Double.",
        "1. Add.\n   1. Take 2.\n   2. Take 3.\n¦2. Double.\n   1. Take 5.",
        "0. Read.\n¦1. Write.",
        "1.5 litres are enough.\n¦2.5 litres are too much.",
        "1986 was a year.\n¦1987 was one, too.",
        "1. Add.\n\n$$\n2 + 3\n$$\n\n¦2. Double.\n\n```\n3. Not me.\n```\n\n¦Done.",
    ),
    "words": (
        "Step 1: Add. Then look.\n¦Step 2: Double.\n\n¦Answer: 10",
        "**Step 1:** Add.\n\nIt is 5.\n\n¦**Step 2:** Double.\n\nIt is 10.",
        "## Step 1\n\nAdd.\n\n¦## Step 2\n\nDouble.",
        "Step 1: Choose.\n1. This.\n2. That.\n¦Step 2: Go.\n1. Now.\n2. Later.",
        "Schritt 1: Addieren.\n¦Schritt 2: Verdoppeln.",
        "第一步：相加。\n¦第二步：翻倍。",
        "步骤1：相加。\n¦步骤2：翻倍。",
        "STEP 1\nAdd.\n¦step 2\nDouble.",
    ),
    "paragraphs": (
        "Add 2 and 3. That is 5.\n\n¦Double it:\n\n$$\n2 * 5\n$$\n\n¦So it is 10.",
        "There are 2. There are 3.\n¦So there are 5.\n¦Answer: 5",
        "# Sum\n\nAdd.\n\n¦Double.",
        "Think:\n- This.\n- That.\n\n¦Then go.",
        "All in one line. Really. Yes.",
    ),
}

FROM_RESPONSES: dict[str, tuple[str, ...]] = {
    "words like abbreviations": (
        "Ask me. ¦Then go.",
        "No. ¦Windows cannot do that.",
        "See No. 5 and no. 6. ¦They are open.",
        "It is OK. ¦Go on.",
        "Do ten reps. ¦Rest well.",
    ),
    "quotations": (
        'The "silk screen" is a print. ¦Its name comes from "silk".',
        'The saying "the tables have turned" is old. ¦It is "idiomatic".',
        (
            "He wrote: “I am sorry that I damaged the book that you lent me last week. ¦I take pride in mine, and I "
            "know that you do, too.” ¦She left."
        ),
        "She said “Hello! It is late.” and left. ¦He stayed.",
    ),
    "outlines": ("I. Aims\n¦II. The means\n¦• A tool",),
    "code without a fence": ('Here:\n\n{\n¦"a": 1\n}\n\n¦Done.',),
}
"""Texts made after responses of real models that an earlier version cut wrongly. No library was chosen by them."""

LANGUAGES = {"German": "de", "French": "fr", "Spanish": "es", "Russian": "ru", "Greek": "el"}
"""The languages of kinds of texts; other texts are cut without knowing theirs."""

CUT_WRONGLY = (
    "Really?! ¦I had no idea.",
    "It was approx. 10 km away. ¦We walked.",
    "Das 19. Jahrhundert war lang. ¦Das 20. Jahrhundert war kurz.",
    "M. Dupont est arrivé. ¦Il est parti.",
    "「はい。」と彼は言った。¦私は黙った。",
    "他走了……¦后来又回来了。",
)
"""The texts of PROSE for which the library decides otherwise."""


def read(marked: str) -> tuple[str, Sequence[Range]]:
    """The text without its marks, and the ranges between them."""
    parts = marked.split(MARK)
    ends = [sum(map(len, parts[: number + 1])) for number in range(len(parts))]
    return "".join(parts), [Range(start, end) for start, end in zip([0, *ends], ends, strict=False)]
