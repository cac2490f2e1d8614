"""Flat sums and products: what nested ones add up or multiply, each part read over the whole's domain."""

from scalify.normalize.terms import Access, Terms

MOST_PARTS = 12
"""Longer sums and products are left as they are nested."""


def addends(terms: Terms, access: Access) -> list[Access]:
    """The addends of a sum; anything else is its own addend."""
    return _flat(terms, access, "add")


def factors(terms: Terms, access: Access) -> list[Access]:
    """The factors of a product; anything else is its own factor."""
    return _flat(terms, access, "mul")


def goes_outside(terms: Terms, factor: Access) -> bool:
    """Whether a factor is written outside of sums over which it is constant.

    Exponentials and divisors are, since they may cancel there: what a softmax subtracts and divides by.
    Others stay where programs have them, in a norm's scale before a matrix product, say.
    """
    term = terms[factor.term]
    if term.op == "reciprocal":
        return terms[term.operands[0].term].op != "sqrt"
    if term.op == "sqrt":
        return not terms[factor.term].space[1:] and goes_outside(terms, term.operands[0])
    return term.op == "exp" or (term.op.startswith("number:") and term.op != "number:-1")


def _flat(terms: Terms, access: Access, op: str) -> list[Access]:
    found: list[Access] = []
    pending = [access]
    while pending:
        part = pending.pop()
        term = terms[part.term]
        inner = [terms.read(part.index, operand) for operand in term.operands] if term.op == op else []
        read = [operand for operand in inner if operand is not None]
        if read and len(read) == len(inner) and len(found) + len(pending) < MOST_PARTS:
            pending.extend(reversed(read))
        else:
            found.append(part)
    return found
