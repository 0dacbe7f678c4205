from cagat.look.palette import SERIES, SYMBOLS, colour, symbol


def test_forty_things_can_be_told_apart():
    assert len({(colour(number), symbol(number)) for number in range(40)}) == len(SERIES) * len(SYMBOLS) == 40
