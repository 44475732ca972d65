"""What a limited key said of a path lies at no path of this machine: tombstones of a project keep it out there."""

from alembic import op

revision = "0017"
down_revision = "0016"

PLACES = """
DO $do$
BEGIN
    EXECUTE replace(
        pg_get_functiondef('memctl.forgotten'::regproc),
        '(g.location = t.value OR starts_with(g.location, t.value || ''/''))',
        '(g.location = t.value OR starts_with(g.location, t.value || ''/'')
          OR g.said ->> ''confined'' = ''true''
             AND (''key:'' || g.location = t.value OR starts_with(''key:'' || g.location, t.value || ''/'')))');
END $do$;
"""


def upgrade() -> None:
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(PLACES)
