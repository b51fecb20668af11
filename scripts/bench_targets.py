"""What kin is held to, and the table that says what it has reached."""

from dataclasses import dataclass

from bench_measure import print_table, ratio


@dataclass
class Target:
    row: str  # of the measurements
    limit: float
    peer: str = None  # whose value is the measure; none: kin's own value is compared
    least: bool = False  # the limit is the least it may be, not the most
    unit: str = ""

    def bound(self):
        return f"at {'least' if self.least else 'most'} {self.limit:g}{self.unit}"


def judge(name, medians, targets):
    """Kin's medians beside their targets; none without kin, and none that refer to a peer that was left out."""
    verdicts = []
    for target in targets:
        if "kin" not in medians or target.peer and target.peer not in medians:
            continue
        value = medians["kin"][target.row]
        verdict = {"data": name, "row": target.row, "kin": value, "peer": target.peer}
        reached = value
        if target.peer:
            verdict["peer value"] = medians[target.peer][target.row]
            reached = ratio(value, verdict["peer value"])
        met = reached >= target.limit if target.least else reached <= target.limit
        verdicts.append({**verdict, "reached": reached, "target": target.limit, "bound": target.bound(), "met": met})
    return verdicts


def print_targets(verdicts):
    table = [["target", "kin", "peer", "", "kin/peer", "", ""]]
    for verdict in verdicts:
        peer = verdict["peer"]
        table.append(
            [
                f"{verdict['data']}: {verdict['row']}",
                short(verdict["kin"]),
                peer or "",
                short(verdict["peer value"]) if peer else "",
                f"{verdict['reached']:.3f}" if peer else "",
                verdict["bound"],
                "met" if verdict["met"] else "missed",
            ]
        )
    print_table(table)
    print(f"{sum(verdict['met'] for verdict in verdicts)} of {len(verdicts)} targets met", flush=True)


def short(value):
    """Percentages of corrections are small, and their limits are."""
    return f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.4f}"
