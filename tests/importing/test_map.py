"""A map is refused before anything is read, saying what was probably meant."""

from __future__ import annotations

import pytest

from leasebook.domain.errors import InvalidValue
from leasebook.infra.app.errors import UnknownName
from leasebook.infra.app.mapping import check_map, read_map
from leasebook.infra.postgres.old_table import NoSuchTable

from .ground import OLD_MAP, Move

REFUSED = {
    "nam = 'task'": ("map.nam", "perhaps 'name' was meant"),
    "where = 'true'": ("map.name", "missing"),
    "name = 7": ("map.name", "name a column"),
    "name = { valu = 'x' }": ("map.name", "name a column"),
    "name = 'task'\nwhere = ''": ("map.where", "SQL condition"),
    "name = 'task'\nkey = 7": ("map.key", "name a column"),
    "name = 'task'\ntimezone = 'Mars'": ("map.timezone", "Europe/Berlin"),
    "name = 'task'\npriorities = { a = 'b' }": ("map.priorities.a", "give a int"),
    "name = 'task'\nargs = { to = 7 }": ("map.args.to", "name a column"),
    "name = 'task": ("map", "not TOML"),
}


@pytest.mark.acceptance("A06")
@pytest.mark.parametrize("text", REFUSED)
def test_a_map_against_itself(text: str) -> None:
    field, told = REFUSED[text]
    with pytest.raises(InvalidValue) as refused:
        read_map(text)
    assert refused.value.field == field
    assert told.lower() in str(refused.value).lower()


UNFITTING = {
    "name = 'tsk'": "perhaps 'task' was meant",
    "name = 'task'\ndue = 'run_aftr'": "perhaps 'run_after' was meant",
    "name = 'task'\nkey = 'idd'": "perhaps 'id' was meant",
    "name = { value = 'send_mial' }": "perhaps 'send_mail' was meant",
    "name = 'task'\nnames = { x = 'tidi' }": "perhaps 'tidy' was meant",
    "name = { value = 'send_mail' }\nargs = { too = 'task' }": "perhaps 'to' was meant",
    "name = 'task'\ndue = 'naive'": "in which zone",
}


@pytest.mark.acceptance("A06")
@pytest.mark.parametrize("text", UNFITTING)
def test_a_map_against_the_table_and_the_book(move: Move, text: str) -> None:
    move.say("alter table old_queue add column naive timestamp")
    with move.table() as table, pytest.raises((InvalidValue, UnknownName)) as refused:
        check_map(read_map(text), table.columns, move.book.jobs)
    assert UNFITTING[text].lower() in str(refused.value).lower()


@pytest.mark.acceptance("A06")
def test_a_condition_that_the_database_refuses(move: Move) -> None:
    for condition in ("stat = 'new'", "state = 'new')", "state = 'newt'", "true); select (1"):
        with pytest.raises(InvalidValue, match="a condition or column"):
            move.run(OLD_MAP.replace("state = 'new'", condition))
    assert move.say("select 1 from leasebook.audit_log") == []


@pytest.mark.acceptance("A06")
def test_a_table_that_is_not_there_or_has_no_key(move: Move) -> None:
    move.say("create table keyless (task text); create view seen as select * from old_queue")
    with pytest.raises(NoSuchTable, match="perhaps 'old_queue' was meant"):
        move.run(name="old_queu")
    with pytest.raises(NoSuchTable, match="there is no table"):
        move.run(name='a".b')
    with pytest.raises(NoSuchTable, match="is no table"):
        move.run(name="seen")
    with pytest.raises(InvalidValue, match="no primary key"):
        move.run("name = 'task'", name="keyless")
