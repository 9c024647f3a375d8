"""The page on which somebody decides, as a browser's reader sees it."""
from html.parser import HTMLParser
from urllib.parse import urlencode

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Page(HTMLParser):
    """Tags with their attributes, the text of each <pre>, what is marked (<b>), and hidden fields."""

    def __init__(self, answer):
        super().__init__(convert_charrefs=True)
        self.status, self.headers = answer.status, answer.headers
        self.text, self.tags, self.pre, self.marked, self.fields, self.open = "", [], [], [], {}, []
        self.source = answer.body.decode("utf-8", "strict")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "input"):
            self.open.append(tag)
        if tag == "pre":
            self.pre.append("")
        if tag == "input" and dict(attrs).get("type") == "hidden":
            self.fields[dict(attrs)["name"]] = dict(attrs)["value"]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> without its beginning: {self.source}"

    def handle_data(self, data):
        self.text += data
        if "pre" in self.open:
            self.pre[-1] += data
        if "b" in self.open:
            self.marked.append(data)

    def names(self):
        return {tag for tag, _ in self.tags}


def get(who, which):
    return Page(who("GET", f"/approvals/{which}"))


def send(who, which, headers=None, **fields):
    return Page(who("POST", f"/approvals/{which}", urlencode(fields).encode(), {**FORM, **(headers or {})}))
