"""Groups as people describe them: profiles of columns by group, what each column tells, names and sentences."""

from partita.descriptions.answers import GroupsSummary, ViewsInWords
from partita.descriptions.groups import GroupDescription, GroupsDescription, describe_labels
from partita.descriptions.profiles import profile_groups
from partita.descriptions.tables import tabulate_profiles
from partita.descriptions.traits import Trait, find_traits

__all__ = [
    "GroupDescription",
    "GroupsDescription",
    "GroupsSummary",
    "Trait",
    "ViewsInWords",
    "describe_labels",
    "find_traits",
    "profile_groups",
    "tabulate_profiles",
]
