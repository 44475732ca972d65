"""Sentences in languages that no rule of memctl reads: what they ask for is not known."""

from __future__ import annotations

from memctl.domain.support import patterns

_SCRIPTS = patterns.compile("[\u0370-\u10ff\u1200-\u1dff\u1f00-\u1fff\u2c00-\u2dff\ua000-\uabff]{3}")
"""Letters that are neither Latin nor of Korean, Japanese or Chinese."""

_WORDS = patterns.compile(
    r"(?:^|[\s(\"'“«])(?:"
    r"não|você|vocês|devem|sempre|depois|pelo|pela|são|nunca|qualquer|cada|sem|"
    r"antes|uma|seu|sua|isso|essa|também|então|até|já|fazer|aos|nosso|nossa|precisa|pode|"
    r"che|prima|deve|devono|della|delle|degli|nella|ogni|questo|senza|tutti|dopo|bisogna|"
    r"het|een|wordt|worden|moet|moeten|altijd|voor|niet|zonder|elke|iedere|"
    r"się|zawsze|przed|należy|każdy|każdą|każdym|trzeba|musi|oraz|przez|"
    r"vždy|před|není|musí|každý|každou|každým|při|nebo|všechny|"
    r"bir|için|önce|daima|gerekir|gerekli|olmadan|sonra|lazım|tüm|"
    r"và|của|không|phải|luôn|trước|các|được|hãy|"
    r"yang|untuk|selalu|harus|sebelum|dengan|jangan|tanpa|setiap|tidak|"
    r"och|alltid|måste|inte|innan|utan|varje|skall|före|"
    r"og|altid|skal|ikke|før|uden|uten|hver|"
    r"aina|ennen|täytyy|pitää|ilman|kaikki|että|"
    r"mindig|előtt|kell|nélkül|minden|hogy|"
    r"întotdeauna|mereu|trebuie|înainte|fără|fiecare|după|și"
    r")(?:[\s.,;:!?)\"'”»]|$)",
    patterns.I,
)
"""Frequent words of Portuguese, Italian, Dutch, Polish, Czech, Turkish, Vietnamese, Indonesian, Swedish, Danish,
Norwegian, Finnish, Hungarian and Romanian, as far as English, German, French and Spanish have none of them."""


def unread(sentence: str) -> bool:
    """Whether a sentence is in a language that no rule reads."""
    return _SCRIPTS.search(sentence) is not None or _WORDS.search(sentence) is not None
