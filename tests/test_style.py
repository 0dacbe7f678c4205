from html.parser import HTMLParser

from cagat.style import Table


def test_markdown_and_html_show_text_as_it_is():
    table = Table(["name", "n"], [["a|b <i>", "1"], ["c", "2"]])
    assert table.markdown().splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a\\|b &lt;i> | 1 |",
        "| c | 2 |",
    ]
    html = table.html()
    HTMLParser().feed(html)
    assert '<td class="word">a|b &lt;i&gt;</td><td>1</td>' in html
    assert "<i>" not in html
