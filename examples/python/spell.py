"""Finds the nearest known word for each misspelt word."""

KNOWN = "range record report trace thread track tree table time tick task chunk clock capture call".split()
MISSPELT = "rnage recrod reprot trcae thraed tracck tere tabel tiem tikc taks chukn clokc captrue cal".split()


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], cheapest(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def cheapest(*costs):
    return min(costs)


def nearest(word):
    return min(KNOWN, key=lambda known: distance(word, known))


def main():
    for _ in range(20):
        found = [nearest(word) for word in MISSPELT]
    print(*found)


if __name__ == "__main__":
    main()
