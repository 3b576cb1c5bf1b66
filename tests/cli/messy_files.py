"""Ten files as other programs write them, each with three planted groups: (name, bytes, groups, options)."""

import csv
import datetime as dt
import io

import numpy as np

FREQUENCY = np.array(["never", "rarely", "sometimes", "often", "always"])
INCOME = np.array(["under 10k", "10k-25k", "25k-50k", "50k-100k", "over 100k"])


def csv_bytes(rows, **form):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", **form).writerows(rows)
    return out.getvalue().encode()


def german(value, places=2):
    return f"{value:,.{places}f}".translate(str.maketrans(",.", ".,"))


def revenue(rng):
    """Titles, semicolons, decimal commas, dates of three formats, a total, another encoding."""
    z = rng.integers(3, size=220)
    spend = np.array([180.0, 2400.0, 31000.0])[z] * rng.lognormal(0, 0.35, len(z))
    orders = rng.poisson(np.array([2, 9, 40])[z]) + 1
    first = [
        dt.date(2019, 1, 1) + dt.timedelta(days=int(d))
        for d in np.array([1500, 900, 100])[z] + rng.integers(0, 300, len(z))
    ]
    forms = np.array(["%d.%m.%Y", "%Y-%m-%d", "%d.%m.%y"])[rng.choice(3, len(z), p=[0.85, 0.1, 0.05])]
    land = [rng.choice(["DE", "AT", "CH"], p=np.roll([0.8, 0.1, 0.1], k)) for k in z]
    rows = [
        f"K{10_000 + 7 * i};{german(spend[i])} €;{orders[i]};{first[i].strftime(forms[i])};{land[i]};"
        for i in range(len(z))
    ]
    above = [
        "Umsatzübersicht;;;;;",
        "Stand: 31.12.2024;;;;;",
        ";;;;;",
        "Kunden-Nr.;Umsatz (€);Bestellungen;Erstkauf;Land;",
    ]
    total = f"Summe;{german(spend.sum())} €;{orders.sum()};;;"
    return "revenue.csv", "\n".join([*above, *rows, total, ""]).encode("cp1252"), z, []


def survey(rng):
    """Codes 98 and 99, ranges of income, words of frequency, an export with a byte-order mark."""
    z = rng.integers(3, size=300)
    center = np.array([[1.6] * 3 + [4.3] * 3, [4.4] * 3 + [4.0] * 3, [3.0] * 3 + [1.7] * 3])
    answers = np.clip(np.rint(center[z] + rng.normal(0, 0.8, (len(z), 6))), 1, 5).astype(int)
    answers = np.where(rng.random(answers.shape) < 0.06, rng.choice([98, 99], answers.shape), answers)
    age = np.where(
        rng.random(len(z)) < 0.04, 99, (np.array([24, 45, 66])[z] + rng.normal(0, 6, len(z))).round()
    ).astype(int)
    begin = dt.datetime(2025, 3, 3, 8)
    rows = [
        [
            "StartDate",
            "ResponseId",
            *(f"Q{j + 1}" for j in range(6)),
            "age",
            "income",
            "how often?",
            "owns_home",
            "comments",
        ]
    ]
    for i, k in enumerate(z):
        sent = begin + dt.timedelta(minutes=int(rng.integers(20_000)))
        income = INCOME[np.clip(np.array([0, 2, 1])[k] + rng.integers(0, 3), 0, 4)]
        rows.append([
            sent.strftime("%m/%d/%Y %I:%M %p"), f"R_{rng.integers(1 << 40):010x}", *answers[i], age[i], income,
            FREQUENCY[np.clip(k + 1 + rng.integers(-1, 2), 0, 4)],
            rng.choice(["Yes", "yes", "No"], p=[[0.1, 0, 0.9], [0.7, 0.1, 0.2], [0.6, 0, 0.4]][k]),
            rng.choice(["", "", "fine", "I did not understand question 3", "n/a", "too long"]),
        ])  # fmt: skip
    return "survey.csv", b"\xef\xbb\xbf" + csv_bytes(rows), z, ["--na", "98", "--na", "99"]


def expression(rng):
    """Reads of genes as R writes them: one name less than cells, tabs."""
    n_genes, z = 200, rng.integers(3, size=60)
    change = np.ones((3, n_genes))
    for k in range(3):
        change[k, rng.choice(n_genes, 30, replace=False)] = rng.choice([0.15, 6.0], 30)
    mean = rng.gamma(0.6, 40, n_genes) * change[z] * rng.lognormal(0, 0.3, len(z))[:, None]
    reads = rng.poisson(rng.gamma(4, mean / 4 + 1e-12))
    rows = [[f"ENSG{j:011d}" for j in range(n_genes)], *([f"TCGA-{i:02d}", *reads[i]] for i in range(len(z)))]
    return "expression.tsv", csv_bytes(rows, delimiter="\t"), z, []


def catalogue(rng):
    """Texts with line ends and quotes, article numbers, prices, weights in g and kg, ratings of 5, time zones."""
    z = rng.integers(3, size=240)
    price = np.array([19.0, 140.0, 890.0])[z] * rng.lognormal(0, 0.4, len(z))
    kg = np.array([0.3, 2.5, 14.0])[z] * rng.lognormal(0, 0.3, len(z))
    rating = np.clip(np.array([3.7, 4.2, 4.5])[z] + rng.normal(0, 0.3, len(z)), 1, 5)
    rows = [
        [
            "sku",
            "EAN",
            "title",
            "description",
            "brand",
            "price",
            "weight",
            "rating",
            "availability",
            "url",
            "added",
        ]
    ]
    for i, k in enumerate(z):
        thing, brand = ["cable", "speaker", "printer"][k], f"Brand{rng.integers(60)}"
        added = dt.datetime(2023, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=int(rng.integers(900_000)))
        rows.append([
            f"SKU-{i:05d}", 4_006_381_000_000 + int(rng.integers(10**6)), f"{brand} {thing} {i}",
            f'<p>The {thing}, by {brand}.</p>\nFeatures: "{rng.choice(["fast", "quiet"])}", {rng.integers(1, 5)} years',
            brand, f"${price[i]:,.2f}" if rng.random() > 0.05 else "call for price",
            f"{1000 * kg[i]:.0f} g" if kg[i] < 1 else f"{kg[i]:.1f} kg",
            f"{rating[i]:.1f}/5" if rng.random() > 0.05 else "",
            rng.choice(["in stock", "In Stock", "out of stock"]), f"https://shop.example/p/{i}", added.isoformat(),
        ])  # fmt: skip
    return "catalogue.csv", csv_bytes(rows), z, []


def sessions(rng):
    """Identifiers, addresses, time stamps with milliseconds, status codes, truth values in words."""
    z = rng.integers(3, size=300)
    hour = np.array([13, 20, 3])[z] + rng.normal(0, 2, len(z))
    duration = np.array([800.0, 45_000.0, 300.0])[z] * rng.lognormal(0, 0.5, len(z))
    requests = rng.poisson(np.array([2, 25, 120])[z]) + 1
    rows = [
        [
            "session_id",
            "user_id",
            "timestamp",
            "ip",
            "duration_ms",
            "n_requests",
            "last_status",
            "bytes",
            "is_bot",
            "referrer",
        ]
    ]
    for i, k in enumerate(z):
        at = dt.datetime(2025, 6, 1) + dt.timedelta(days=int(rng.integers(60)), hours=float(hour[i] % 24))
        status = rng.choice(
            [200, 304, 404, 500],
            p=[[0.8, 0.1, 0.08, 0.02], [0.9, 0.08, 0.01, 0.01], [0.3, 0.02, 0.5, 0.18]][k],
        )
        rows.append([
            f"{rng.integers(1 << 62):016x}", rng.integers(10**5, 10**6), at.isoformat(" ", "milliseconds"),
            ".".join(map(str, rng.integers(1, 255, 4))), int(duration[i]), requests[i], status,
            int(requests[i] * rng.lognormal(9, 0.6)), ["False", "False", "True"][k] if rng.random() > 0.03 else "",
            rng.choice(["google", "direct", "(none)", "-"]),
        ])  # fmt: skip
    return "sessions.csv", csv_bytes(rows), z, []


def laboratory(rng):
    """Units below the names, values below a limit, n.d., two numbers in one cell, words in several spellings."""
    z = rng.integers(3, size=180)
    crp = np.array([0.8, 6.0, 60.0])[z] * rng.lognormal(0, 0.5, len(z))
    hb = np.array([14.5, 12.8, 10.2])[z] + rng.normal(0, 0.8, len(z))
    pressure = (np.array([118, 139, 104])[z] + rng.normal(0, 8, len(z))).astype(int)
    temperature = np.array([36.6, 37.1, 38.9])[z] + rng.normal(0, 0.25, len(z))
    rows = [
        ["patient", "sex", "BP", "CRP", "Hb", "Temp", "culture"],
        ["", "", "mmHg", "mg/L", "g/dL", "°C", ""],
    ]
    for i, k in enumerate(z):
        rows.append([
            f"P{i + 1}", rng.choice(["m", "f", "M", "F"]), f"{pressure[i]}/{int(0.6 * pressure[i])}",
            "<1.0" if crp[i] < 1 else f"{crp[i]:.1f}", "n.d." if rng.random() < 0.05 else f"{hb[i]:.1f}",
            f"{temperature[i]:.1f}",
            rng.choice(["neg", "pos"], p=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]][k]),
        ])  # fmt: skip
    return "laboratory.csv", csv_bytes(rows), z, []


def cities(rng):
    """Comments, a table of Markdown with bars and a rule, letters for thousands and millions, a source below."""
    z = rng.integers(3, size=120)
    people = np.array([8e4, 6e5, 5.5e6])[z] * rng.lognormal(0, 0.3, len(z))
    income = np.array([18, 32, 61])[z] * 1000 + rng.normal(0, 4000, len(z))
    rows = [
        f"City {i} | {f'{people[i] / 1e6:.1f}M' if people[i] > 1e6 else f'{people[i] / 1e3:.0f}k'} | "
        f"{[40, 150, 900][k] * rng.lognormal(0, 0.3):.0f} | {'Y' if rng.random() < [0.02, 0.5, 0.97][k] else 'N'} | "
        f"{rng.integers(800, 1950)} | ${income[i]:,.0f}"
        for i, k in enumerate(z)
    ]
    above = [
        "# cities, downloaded 2025-01-01",
        "Name | Population | Area km2 | Metro | Founded | GDP per head",
        "--- | --- | --- | --- | --- | ---",
    ]
    return "cities.txt", "\n".join([*above, *rows, "", "Source: nowhere", ""]).encode(), z, []


def orders(rng):
    """French orders: decimal commas, a price or a word in one column, percentages, few accents in another encoding."""
    z = rng.integers(3, size=240)
    amount = np.array([40.0, 260.0, 1700.0])[z] * rng.lognormal(0, 0.3, len(z))
    rows = [
        [
            "N° commande",
            "Date",
            "Canal",
            "Articles",
            "Montant HT",
            "Remise",
            "Livraison",
            "Retour ?",
            "Commentaire",
        ]
    ]
    for i, k in enumerate(z):
        day = dt.date(2024, 1, 1) + dt.timedelta(days=int(rng.integers(366)))
        rows.append([
            f"CMD-2024-{i + 1:05d}", day.strftime("%d/%m/%Y"),
            rng.choice(["Web", "Boutique", "Téléphone"], p=np.roll([0.8, 0.1, 0.1], k)),
            rng.poisson(np.array([1, 4, 15])[k]) + 1, f"{german(amount[i])} €",
            f"{rng.choice([0, [5, 10, 20][k]])} %", "offerte" if rng.random() < 0.3 + 0.3 * k else "6,90",
            rng.choice(["oui", "non", ""], p=[0.1, 0.85, 0.05]), rng.choice(["", "", "très bien", "livré en retard"]),
        ])  # fmt: skip
    text = csv_bytes(rows, delimiter=";").decode() + f"TOTAL;;;;{german(amount.sum())} €;;;;\n"
    return "commandes.csv", text.encode("cp1252"), z, []


def tools(rng):
    """A form: questions as names, several choices in a cell, answers that are none, units in some cells, addresses."""
    z = rng.integers(3, size=240)
    names = np.array(["Excel", "Python", "R", "SQL", "SPSS"])
    uses = (
        rng.random((len(z), 5))
        < np.array([[0.95, 0.05, 0.05, 0.2, 0.1], [0.2, 0.95, 0.4, 0.9, 0.05], [0.8, 0.1, 0.9, 0.1, 0.9]])[z]
    )
    scale = ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"]
    rows = [
        [
            "Timestamp",
            "Which tools do you use?",
            "I like my tools",
            "I want to learn",
            "Years of experience",
            "Email",
        ]
    ]
    for i, k in enumerate(z):
        at = dt.datetime(2025, 2, 3, 9) + dt.timedelta(minutes=int(rng.integers(9_000)))
        answers = np.clip(
            np.rint(np.array([[3, 0], [4, 3], [1, 4]])[k] + rng.normal(0, 0.7, 2)), 0, 4
        ).astype(int)
        years = max(0, round(rng.normal([6, 3, 15][k], 1.5)))
        rows.append([
            at.strftime("%m/%d/%Y %H:%M:%S"), ", ".join(names[uses[i]]) or "none",
            *(scale[a] if rng.random() > 0.04 else "Prefer not to say" for a in answers),
            f"{years} years" if rng.random() < 0.2 else years, f"user{i}@example.org" if rng.random() < 0.7 else "",
        ])  # fmt: skip
    return "tools.csv", b"\xef\xbb\xbf" + csv_bytes(rows), z, []


def plants(rng):
    """Traits of plants: units in names and cells, values about a number, months, plots that repeat, species."""
    z = rng.integers(3, size=150)
    rows = [["no", "Plot", "Species", "Height [cm]", "Leaf N %", "Seed mass", "Month", "Woodiness", "pH"]]
    for i, k in enumerate(z):
        ph = rng.normal(6.5, 0.5)
        rows.append([
            4_000 + 13 * i + int(rng.integers(13)), f"P{i % 30:02d}",
            f"Genus{rng.integers(60)} species{rng.integers(9)}",
            f"{rng.lognormal([2.5, 4, 6.5][k], 0.35):.1f}", f"{rng.normal([3.2, 2.4, 1.6][k], 0.2):.2f} %",
            f"{rng.lognormal([-1, 1, 3.5][k], 0.8):.3g} mg" if rng.random() > 0.08 else "n/a",
            int(np.clip(round(rng.normal([4, 6.5, 5][k])), 1, 12)), ["herb", "herb", "woody"][k],
            f"{'~' if rng.random() < 0.1 else ''}{ph:.1f}",
        ])  # fmt: skip
    return "plants.tsv", csv_bytes(rows, delimiter="\t"), z, []


FILES = [
    revenue, survey, expression, catalogue, sessions, laboratory, cities, orders, tools, plants
]  # fmt: skip
