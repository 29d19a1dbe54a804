"""Paraphraser: says one thing in many ways, by templates, synonyms, order and small talk.

The words for tuning and for testing are disjoint, so that nothing can be learned by heart.
"""

from __future__ import annotations

import random
import re
from typing import Final

TUNING, TEST = "tuning", "test"

SYNONYMS: Final = {
    TUNING: {
        "want": ["want", "would like", "need"],
        "please": ["please", "kindly", ""],
        "help": ["help", "assist"],
        "check": ["check", "look at", "have a look at"],
        "quickly": ["quickly", "soon", "right away"],
        "done": ["done", "finished", "all set"],
    },
    TEST: {
        "want": ["wish", "am hoping", "am calling because I have", "was told"],
        "please": ["if you could", "if it is not too much trouble", "when you have a moment"],
        "help": ["sort this out", "take care of it", "give me a hand"],
        "check": ["go through", "pull up", "examine", "verify"],
        "quickly": ["without delay", "as fast as you can", "at your earliest convenience"],
        "done": ["completed", "taken care of", "in place now", "settled"],
    },
}
GREETINGS: Final = {
    TUNING: ["Hi!", "Hello there,", "Good morning.", ""],
    TEST: ["Hey,", "Greetings.", "Good afternoon to you!", "Yo,", "Thanks for picking up."],
}
SMALL_TALK: Final = {
    TUNING: ["Nice weather today.", "I am on my phone, sorry for typos.", "Thank you for your patience."],
    TEST: [
        "My cat is walking over the keyboard, apologies.",
        "It has been a long week for me.",
        "You have been really kind so far, I appreciate that.",
        "I was just telling my neighbour about you.",
    ],
}
REQUESTS: Final = {
    TUNING: [
        "I {want} to {verb} {thing}, {please}.",
        "{please} {help} me {verb} {thing}.",
        "Can you {help} me? It is about how to {verb} {thing}.",
    ],
    TEST: [
        "There is {thing} that I {want} to {verb}; {please} do it {quickly}.",
        "Regarding {thing}: {please}, {verb} it {quickly}.",
        "So, {thing}. I {want} to {verb} that. Could you {help}?",
        "What would it take to {verb} {thing}? I {want} to have it {done} {quickly}.",
    ],
}
REPLIES: Final = {
    TUNING: [
        "Sure, let me {check} that for you.",
        "Of course. I will {check} it now.",
        "One moment, I will {check} it.",
    ],
    TEST: [
        "Absolutely, give me a second to {check} your record.",
        "I understand. First I have to {check} what we have on file.",
        "Right, that is something I can {check} straight away.",
        "Let us see. I am going to {check} this before anything else.",
    ],
}
ENDINGS: Final = {
    TUNING: ["Everything is {done}. Is there anything else?", "It is {done}, have a nice day."],
    TEST: [
        "You can consider the matter {done}. Do not hesitate to write again.",
        "That should be {done} on our side; is there more I can do for you today?",
        "Good news, all of it is {done}. Enjoy the rest of your afternoon.",
    ],
}
NOTES: Final = {
    TUNING: ["The customer {want} to {verb} {thing}.", "Request: the customer asks us to {verb} {thing} {quickly}."],
    TEST: [
        "Somebody would have us {verb} {thing} and hopes that it is {done} {quickly}.",
        "To whom it may concern: {thing} is what this is about, and we are asked to {verb} it.",
        "They were clear about what they expect of us, namely that we {verb} {thing}.",
    ],
}


class Paraphraser:
    """Words for one run."""

    def __init__(self, rng: random.Random, words: str) -> None:
        self._rng, self._words = rng, words

    def _filled(self, templates: dict[str, list[str]], **slots: str) -> str:
        text = self._rng.choice(templates[self._words])
        own = {name: self._rng.choice(options) for name, options in SYNONYMS[self._words].items()}
        text = " ".join(text.format(**own, **slots).split())
        text = re.sub(r"\s+([,.;?!])", r"\1", text)
        return text[:1].upper() + text[1:]

    def request(self, verb: str, thing: str) -> str:
        """Return what a user asks for, with a greeting and small talk in any order."""
        parts = [self._filled(REQUESTS, verb=verb, thing=thing)]
        if self._rng.random() < 0.5:
            parts.insert(self._rng.randrange(2), self._rng.choice(SMALL_TALK[self._words]))
        return " ".join([self._rng.choice(GREETINGS[self._words]), *parts]).strip()

    def reply(self) -> str:
        """Return what a model says before it calls a tool."""
        return self._filled(REPLIES)

    def ending(self) -> str:
        """Return what a model says last."""
        return self._filled(ENDINGS)

    def note(self, verb: str, thing: str) -> str:
        """Return a prose argument."""
        return self._filled(NOTES, verb=verb, thing=thing)

    def small_talk(self) -> str:
        """Return something that has nothing to do with it."""
        return self._rng.choice(SMALL_TALK[self._words])
