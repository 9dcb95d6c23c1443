"""A board of several validators on one machine, for tests: all their keys are made in one place."""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Final

from anofel.board.engines import Engine
from anofel.disk.files import FileExists
from anofel.messages import Genesis, Validator, binding_bytes
from anofel.node.files import NodeConfig
from anofel.node.init import BoardNumbers, BoardTrust, check_usable, genesis_of
from anofel.node.replicated.engine import EngineKeys
from anofel.node.replicated.files import write_validator
from anofel.node.replicated.network import Neighbour, Network, node_id
from anofel.pki.certificates import Purpose, RoleKey
from anofel.pki.testing_ca import TestAuthority
from anofel.primitives import MessageSecret
from anofel.proofs.keys import KeyDirectory

HOST: Final = "127.0.0.1"


def make_test_validators(
    directory: Path,
    *,
    number: int,
    name: str,
    authority: TestAuthority,
    trust: BoardTrust,
    keys: KeyDirectory,
    clock: BoardNumbers,
    config: NodeConfig,
    ports: tuple[int, int],
    allow_insecure_keys: bool,
) -> Genesis:
    """Make ``node0`` and so on in a new directory. ``ports``: the first for HTTP and for engines.

    ``trust``: of whom its storage role is not used, since each validator has its own. Raises ``AnofelError``.
    """
    if directory.exists():
        raise FileExists(f"{directory} exists already; it is not overwritten.")
    check_usable(keys, allow_insecure_keys=allow_insecure_keys)
    names = [f"Validator {place}" for place in range(number)]
    roles = [authority.issue(Purpose.VALIDATOR, text) for text in names]
    storage = [authority.issue(Purpose.STORAGE, f"Storage of {text}", organisation=text) for text in names]
    engines = [EngineKeys(MessageSecret.generate(), MessageSecret.generate()) for _ in names]
    nonce, faulty = secrets.token_bytes(32), (number - 1) // 3
    genesis = genesis_of(
        name=name,
        trust=trust,
        keys=keys,
        clock=clock,
        nonce=nonce,
        engine=Engine.COMETBFT,
        validators=tuple(
            bound_validator(role, engine.validator, nonce)
            for role, engine in zip(roles, engines, strict=True)
        ),
        holders=tuple(role.chain for role in storage),
        quorum=number - faulty,
    )
    http, peers = ports
    network = Network(
        listen="",
        validator=[
            Neighbour(
                name=text,
                peer=f"{node_id(engine.transport.public_key().to_bytes())}@{HOST}:{peers + place}",
                url=f"http://{HOST}:{http + place}",
            )
            for place, (text, engine) in enumerate(zip(names, engines, strict=True))
        ],
    )
    for place in range(number):
        write_validator(
            directory / f"node{place}",
            genesis,
            replace(network, listen=f"{HOST}:{peers + place}"),
            engine=engines[place],
            validator=roles[place],
            storage=storage[place],
            keys=keys,
            config=config,
        )
    return genesis


def bound_validator(role: RoleKey, secret: MessageSecret, nonce: bytes, power: int = 1) -> Validator:
    """Return a validator as genesis lists it: the certified key signs the one that votes."""
    key = secret.public_key().to_bytes()
    return Validator(key=key, power=power, chain=role.chain, binding=role.sign(binding_bytes(nonce, key)))
