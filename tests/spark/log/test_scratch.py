"""What a job keeps for a while goes with the process that asked for it."""

import subprocess
import sys

CODE = """
from ledgermq_spark.log.scratch import directory_until_exit
path = directory_until_exit()
(path / "fold").mkdir()
(path / "fold/part").write_text("rows")
print(path)
raise SystemExit({code})
"""


def test_a_scratch_directory_is_gone_with_its_process(tmp_path):
    """Whatever stands in it; a notebook asks for many."""
    environment = {"TMPDIR": str(tmp_path)}
    for code in (0, 1):
        ended = subprocess.run(
            [sys.executable, "-c", CODE.format(code=code)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.stdout.startswith(str(tmp_path)), ended.stderr
        assert list(tmp_path.iterdir()) == []
