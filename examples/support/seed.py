"""The customers and orders a new database starts with."""

from typing import NamedTuple


class SeedCustomer(NamedTuple):
    id: int
    name: str
    email: str


class SeedOrder(NamedTuple):
    id: str
    customer_id: int
    status: str
    placed_on: str
    items: tuple[tuple[str, int], ...]
    """Name and price in cents."""


CUSTOMERS = (
    SeedCustomer(1, "Ada Lovelace", "ada@example.com"),
    SeedCustomer(2, "Grace Hopper", "grace@example.com"),
    SeedCustomer(3, "Alan Turing", "alan@example.com"),
    SeedCustomer(4, "Katherine Johnson", "katherine@example.com"),
    SeedCustomer(5, "Edsger Dijkstra", "edsger@example.com"),
    SeedCustomer(6, "Barbara Liskov", "barbara@example.com"),
    SeedCustomer(7, "Donald Knuth", "donald@example.com"),
    SeedCustomer(8, "Margaret Hamilton", "margaret@example.com"),
    SeedCustomer(9, "Tony Hoare", "tony@example.com"),
    SeedCustomer(10, "Radia Perlman", "radia@example.com"),
    SeedCustomer(11, "Leslie Lamport", "leslie@example.com"),
    SeedCustomer(12, "Frances Allen", "frances@example.com"),
)

ORDERS = (
    SeedOrder("A-1001", 1, "delivered", "2026-08-03", (("Desk lamp", 4590), ("Light bulb", 690))),
    SeedOrder("A-1002", 2, "delivered", "2026-08-05", (("Mechanical keyboard", 12900),)),
    SeedOrder("A-1003", 1, "delivered", "2026-08-19", (("Wireless headphones", 8990), ("Travel case", 1950))),
    SeedOrder("A-1004", 3, "shipped", "2026-09-01", (("Electric kettle", 3990),)),
    SeedOrder("A-1005", 4, "delivered", "2026-09-02", (("Star atlas", 5500), ("Red flashlight", 1490))),
    SeedOrder("A-1006", 5, "cancelled", "2026-09-02", (("Coffee grinder", 7900),)),
    SeedOrder("A-1007", 6, "delivered", "2026-09-07", (("Backpack", 9900), ("Water bottle", 2490))),
    SeedOrder("A-1008", 7, "delivered", "2026-09-09", (("Fountain pen", 6400), ("Ink cartridges", 890))),
    SeedOrder("A-1009", 1, "shipped", "2026-09-12", (("Yoga mat", 3490),)),
    SeedOrder("A-1010", 8, "delivered", "2026-09-13", (("Model rocket", 7250), ("Glue", 450))),
    SeedOrder("A-1011", 9, "processing", "2026-09-15", (("Chess clock", 4900),)),
    SeedOrder("A-1012", 10, "delivered", "2026-09-18", (("Network switch", 5990), ("Patch cables", 1290))),
    SeedOrder("A-1013", 11, "delivered", "2026-09-20", (("Wall clock", 3790),)),
    SeedOrder("A-1014", 12, "delivered", "2026-09-21", (("Rain jacket", 11900),)),
    SeedOrder("A-1015", 2, "delivered", "2026-09-24", (("Label printer", 8450), ("Label rolls", 1590))),
    SeedOrder("A-1016", 3, "delivered", "2026-09-26", (("Running shoes", 10900),)),
    SeedOrder("A-1017", 4, "shipped", "2026-10-01", (("Graph notebook", 1250), ("Pencil set", 990))),
    SeedOrder("A-1018", 5, "delivered", "2026-10-03", (("Bicycle lock", 4250),)),
    SeedOrder("A-1019", 6, "awaiting payment", "2026-10-05", (("Office chair", 24900),)),
    SeedOrder("A-1020", 7, "delivered", "2026-10-08", (("Organ recording", 1990), ("Sheet music", 2790))),
    SeedOrder("A-1021", 8, "processing", "2026-10-11", (("Noise machine", 3990),)),
    SeedOrder("A-1022", 9, "delivered", "2026-10-13", (("Espresso cups", 2890),)),
    SeedOrder("A-1023", 10, "shipped", "2026-10-16", (("Garden shears", 3290), ("Plant pots", 2190))),
    SeedOrder("A-1024", 11, "delivered", "2026-10-19", (("Bread knife", 4590),)),
    SeedOrder("A-1025", 12, "delivered", "2026-10-22", (("Hiking poles", 6990), ("Wool socks", 1690))),
    SeedOrder("A-1026", 1, "processing", "2026-10-27", (("Bluetooth speaker", 5990),)),
    SeedOrder("A-1027", 2, "shipped", "2026-10-30", (("Monitor stand", 4790),)),
    SeedOrder("A-1028", 3, "processing", "2026-11-03", (("Puzzle box", 3190), ("Playing cards", 790))),
    SeedOrder("A-1029", 6, "shipped", "2026-11-06", (("Picture frame", 2290),)),
    SeedOrder("A-1030", 8, "awaiting payment", "2026-11-09", (("Telescope", 39900),)),
)

UNPAID = ("awaiting payment", "cancelled")
"""Statuses of orders nothing was paid for."""
