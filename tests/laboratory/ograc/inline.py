"""Puts private subprograms of the package in the place of their calls, for oGRAC.

oGRAC has no private subprograms and no types in a package, so a record or an associative array
cannot be handed to another subprogram there. What takes or returns one becomes a block in its
caller, with the subprogram's own text: its names get a number, `return` becomes an assignment and a
jump. Everything else becomes a procedure or a function of its own.
"""

import re

from tests.laboratory.ograc.source import PRIVATE, Routine, closing, split

_NAMES = re.compile(r"^ *(?:cursor |type )?(?!pragma )(\w+) [^;]*;", re.MULTILINE)
_VARIABLE = re.compile(r"[a-z]\w*(?:\.\w+)?$")
_UNSIZED = {"varchar2": "varchar2(8000)", "timestamp": "timestamp(6)"}


class Inliner:
    """Writes subprograms so that no type of the package stands between two of them.

    types: declarations of the package's types, put into every unit that uses one.
    note: a procedure to call with the name of each subprogram where that begins; none if empty.
    """

    def __init__(self, routines: dict[str, Routine], types: str, note: str = "") -> None:
        self._routines = routines
        self._types = types
        self._note = note
        self._count = 0

    def unit(self, routine: Routine, name: str) -> str:
        """Return a subprogram as a unit of its own, without the word create."""
        declarations, statements, handlers = self._inside(routine, dict(routine.nested))
        statements = self._noted(routine) + statements
        text = declarations + statements + handlers
        types = self._types if PRIVATE.search(text) else ""
        parameters = ",\n".join(
            f"    {one.name} {one.mode} {one.type}"
            + (f" default {one.default}" if one.default else "")
            for one in routine.parameters
        )
        head = f"{routine.kind} {name}" + (f"(\n{parameters}\n)" if parameters else "")
        if routine.returns:
            head += f"\nreturn {routine.returns}"
        if handlers:
            handlers = f"exception\n{handlers}"
        return f"{head}\nis\n{types}{declarations}begin\n{statements}{handlers}end {name};\n"

    def _noted(self, routine: Routine) -> str:
        """Return the call that notes that a subprogram runs, if there is one to note it."""
        return f"    {self._note}('{routine.name}');\n" if self._note else ""

    def _inside(self, routine: Routine, near: dict[str, Routine]) -> tuple[str, str, str]:
        moved = []
        kept = []
        for line in re.findall(r"[^;]*;", routine.declarations):
            called = re.match(r"(\s*)(\w+) ([^;]*?) := ((\w+)\(.*);$", line, re.DOTALL)
            if called and self._private(called[5], near):
                kept.append(f"{called[1]}{called[2]} {called[3]};")
                moved.append(f"    {called[2]} := {called[4]};\n")
            else:
                kept.append(line)
        statements = "".join(moved) + routine.statements
        return (
            "".join(kept) + "\n",
            self._expand(statements, near),
            self._expand(routine.handlers, near),
        )

    def _private(self, name: str, near: dict[str, Routine]) -> Routine | None:
        routine = near.get(name) or self._routines.get(name)
        return routine if routine and (name in near or routine.is_private) else None

    def _expand(self, text: str, near: dict[str, Routine]) -> str:
        call = re.compile(r"^( *)(?:([\w.()]+) := |(return) )?(\w+)\(", re.MULTILINE)
        done, at = [], 0
        while found := call.search(text, at):
            routine = self._private(found[4], near)
            if routine is None:
                done.append(text[at : found.end()])
                at = found.end()
                continue
            end = closing(text, found.end() - 1)
            if not text.startswith(";", end + 1):
                raise ValueError(f"{found[4]} in an expression")
            done.append(text[at : found.start()])
            given = split(text[found.end() : end])
            done.append(self._block(routine, given, found[2] or "", near))
            at = end + 2
        return "".join(done) + text[at:]

    def _block(
        self, routine: Routine, given: list[str], target: str, near: dict[str, Routine]
    ) -> str:
        """Return the block that stands for a call; target takes what a function returns."""
        self._count += 1
        number = self._count
        before: list[str] = []
        variables: list[str] = []
        names: dict[str, str] = {}
        values = dict(zip((one.name for one in routine.parameters), given, strict=False))
        for text in given:
            name, arrow, value = text.partition(" => ")
            if arrow:
                values.pop(next(key for key, held in values.items() if held == text), None)
                values[name] = value
        for one in routine.parameters:
            value = values.get(one.name, one.default)
            own = f"{one.name}_{number}"
            inner = re.match(r"(\w+)\(", value)
            if inner and self._private(inner[1], near):
                variables.append(f"    {own} {one.type};\n")
                before.append(f"    {own} := {value};\n")
                names[one.name] = own
            elif _VARIABLE.match(value) and value not in ("null", "true", "false"):
                names[one.name] = value
            else:
                its_type = _UNSIZED.get(one.type, one.type)
                variables.append(f"    {own} {its_type} := {value};\n")
                names[one.name] = own
        own_names = _NAMES.findall(re.sub(r"\([^;]*?\)(?= is\b)", "", routine.declarations))
        for name in own_names:
            names[name] = f"{name}_{number}"
        nested = {**near, **{key: self._renamed(one, names) for key, one in routine.nested.items()}}
        body = Routine(
            routine.kind, routine.name, [], "", _rename(routine.declarations, names),
            self._leave(_rename(routine.statements, names), target, number),
            self._end_handlers(_rename(routine.handlers, names), target),
        )  # fmt: skip
        declarations, statements, handlers = self._inside(body, nested)
        jumped = f"    <<end_{number}>>\n    null;\n" if f"goto end_{number};" in statements else ""
        return (
            f"-- {routine.name}\ndeclare\n{''.join(variables)}{declarations}begin\n"
            f"{self._noted(routine)}{self._expand(''.join(before), near)}{statements}{jumped}"
            + (f"exception\n{handlers}" if handlers else "")
            + "end;"
        )

    def _renamed(self, routine: Routine, names: dict[str, str]) -> Routine:
        own = {one.name for one in routine.parameters}
        names = {key: value for key, value in names.items() if key not in own}
        return Routine(
            routine.kind, routine.name, routine.parameters, routine.returns,
            _rename(routine.declarations, names), _rename(routine.statements, names),
            _rename(routine.handlers, names),
        )  # fmt: skip

    def _end_handlers(self, handlers: str, target: str) -> str:
        """Return handlers whose `return`, the last statement of each, assigns to the target."""
        return re.sub(
            r"^( *)return( [^;]*)?;",
            lambda found: f"{found[1]}{target} :={found[2]};" if found[2] else f"{found[1]}null;",
            handlers,
            flags=re.MULTILINE,
        )

    def _leave(self, statements: str, target: str, number: int) -> str:
        """Return statements whose `return` assigns to the target and jumps to the end."""
        last = re.compile(r"\n?    return( [^;]*)?;\s*\Z")
        is_last = last.search(statements)

        def one(found: re.Match[str]) -> str:
            value = (found[2] or "").strip()
            assigned = f"{found[1]}{target} := {value};\n" if value else ""
            if is_last and found.end() >= is_last.end() - 2:
                return assigned
            return f"{assigned}{found[1]}goto end_{number};"

        return re.sub(r"^( *)return( [^;]*)?;", one, statements, flags=re.MULTILINE)


def _rename(text: str, names: dict[str, str]) -> str:
    if not names:
        return text
    word = "|".join(sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"'[^']*'|(?<![\w.])({word})(?!\w)(?! =>)")
    return pattern.sub(lambda found: names[found[1]] if found[1] else found[0], text)
