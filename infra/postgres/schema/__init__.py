"""The schema: its name, how it is made, and whether it is complete.

A worker checks at each start, so the check needs psycopg alone and two catalog queries; Alembic
and SQLAlchemy are loaded by ``migrate`` only.
"""
