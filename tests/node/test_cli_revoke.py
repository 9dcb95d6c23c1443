"""``anofel node revoke``: an operator takes a certifier's key back and begins a new epoch."""

import json
import time
from pathlib import Path

from anofel.light_client.client import LightClient
from anofel.messages import CertifierKeyOffer
from anofel.network.transport import Transport
from anofel.pki.certificates import Purpose
from anofel.pki.testing_ca import write_role
from anofel.primitives import CertifierSecret
from anofel.proofs.keys import KeyDirectory
from tests.node.support import SECONDS, make_board, running
from tests.node.test_cli_node import anofel, refused


def test_an_operator_revokes_keys_and_begins_an_epoch_once(keys: KeyDirectory, tmp_path: Path) -> None:
    board, now = make_board(tmp_path / "node", keys), int(time.time())
    for purpose in (Purpose.OPERATOR, Purpose.OWNER):
        issued = board.authority.issue(purpose, purpose.value, now - 3600, now + 86_400)
        write_role(tmp_path / purpose.value, issued)

    def revoke(key: str, role: str = "operator", *options: str):  # type: ignore[no-untyped-def]
        return anofel(
            "revoke", key, "--board", node.url, "--genesis", board.directory / "genesis.bin",
            "--certificate", tmp_path / role / "certificate.pem", "--key", tmp_path / role / "key.pem",
            "--json", *options,
        )  # fmt: skip

    with running(board.directory) as node:
        view = LightClient(tmp_path / "view", Transport(node.url), genesis_hash=board.genesis.hash)
        posted = [board.posting(board.certifier(f"Clinic {number}")) for number in range(2)]
        for posting in posted:
            view.post(posting)
        view.wait_for(lambda state: len(state.certifiers) == 2, "the keys", seconds=SECONDS)
        first, second = (p.body.key for p in posted if isinstance(p.body, CertifierKeyOffer))

        assert revoke(first.hex()).returncode == 2, "it has to be confirmed"
        assert revoke("nothing", "operator", "--confirm").returncode == 2
        stranger = CertifierSecret.generate().public_key().to_bytes().hex()
        refused(revoke(stranger, "operator", "--confirm"), "no such certifier key")
        refused(revoke(first.hex(), "owner", "--confirm"), "operator")
        view.sync()
        assert view.state.certifiers[first].in_force

        done = revoke(first.hex(), "operator", "--confirm")
        assert json.loads(done.stdout)["epoch"] == 0
        assert revoke(first.hex(), "operator", "--confirm").returncode == 0, "what is done stays done"
        refused(revoke(first.hex(), "operator", "--new-epoch", "--confirm"), "revoked before")

        done = revoke(second.hex(), "operator", "--new-epoch", "--confirm")
        assert json.loads(done.stdout)["epoch"] == 1
        refused(revoke(second.hex(), "operator", "--new-epoch", "--confirm"), "epoch 1")
        view.sync()
        assert (view.state.epoch, len(view.state.clients)) == (1, 0)
        assert not any(certifier.in_force for certifier in view.state.certifiers.values())
        view.close()
