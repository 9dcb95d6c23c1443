import secrets
import subprocess
from pathlib import Path

import pytest

from anofel.committee.paillier.arithmetic import parallel
from anofel.committee.paillier.arithmetic.parallel import MIN_PER_WORKER, public_powers, secret_powers

MODULUS = (1 << 607) - 1


def terms(count: int) -> list[tuple[int, int, int]]:
    return [(secrets.randbelow(MODULUS - 1) + 1, secrets.randbits(200) + 1, MODULUS) for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, MIN_PER_WORKER, 2 * MIN_PER_WORKER, 3 * MIN_PER_WORKER + 1])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_secret_powers_are_powers_in_order(count: int, workers: int) -> None:
    given = terms(count)
    assert secret_powers(given, workers) == [pow(*term) for term in given]


def test_public_powers_are_powers_in_order() -> None:
    given = terms(20)
    assert public_powers(given) == [pow(*term) for term in given]
    assert public_powers([]) == []


def test_a_failed_worker_is_an_error_not_a_wrong_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "__name__", "anofel.does.not.exist")
    with pytest.raises((RuntimeError, BrokenPipeError)):
        secret_powers(terms(2 * MIN_PER_WORKER), 2)


def test_secrets_are_not_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    real = subprocess.Popen

    def spy(arguments, **options):
        seen.append(arguments)
        return real(arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", spy)
    secret_powers(terms(2 * MIN_PER_WORKER), 2)
    assert [arguments[1:] for arguments in seen] == [
        ["-P", "-m", "anofel.committee.paillier.arithmetic.parallel"]
    ]


def test_workers_import_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gmpy2.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    given = terms(2 * MIN_PER_WORKER)
    assert secret_powers(given, 2) == [pow(*term) for term in given]
