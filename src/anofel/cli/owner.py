"""``anofel owner``: the owner of one task (steps 1.d and 8′)."""

from pathlib import Path
from typing import Annotated, Any

import typer

from anofel.cli.output import JsonOption, note, warn_insecure
from anofel.cli.role_options import (
    Directory,
    KeyFileOption,
    PassphraseFileOption,
    TrainerOption,
    WaitOption,
    add_init,
    add_status,
    at_work,
    say_what_a_trainer_may,
    show,
    until_stopped,
)
from anofel.cli.status_tables import of_owner
from anofel.errors import WrongUsage

app = typer.Typer(no_args_is_help=True, help="The owner of a task: announce it, train it, end it.")

ROLE = "owner"


def _show(title: str, found: dict[str, Any], *, as_json: bool) -> None:
    show(title, found if as_json else of_owner(found), as_json=as_json)


add_init(app, ROLE, "Make an owner's directory, for one task.")


@app.command()
def announce(
    directory: Directory,
    task: Annotated[Path, typer.Argument(help="The task file.", show_default=False)],
    committee: Annotated[
        str,
        typer.Option(help="The committee: its name, or 8 digits of its id or more.", show_default=False),
    ],
    member: Annotated[
        list[str] | None,
        typer.Option(
            help="Its members as their certificates say, O=University A; a stranger is refused.",
            show_default="any",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Post nothing: say whether the board would take the task."),
    ] = False,
    clients: Annotated[
        int,
        typer.Option(
            min=0,
            help="Wait until so many clients are registered on the board; nobody sees for which task.",
        ),
    ] = 0,
    early_end: Annotated[
        bool,
        typer.Option(
            "--early-end", help="Let the owners of the bundle, all together, end an iteration early."
        ),
    ] = False,
    rule: Annotated[
        str,
        typer.Option(
            help="For tasks with the rule 'owner': your function that makes each model, "
            "module:function; kept in role.toml."
        ),
    ] = "",
    trainer: TrainerOption = "",
    first_model: Annotated[
        Path | None, typer.Option(help="The model file to start at, say of anofel model import.")
    ] = None,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Announce the task. It cannot be changed afterwards; see its ε first with anofel privacy.

    Examples: anofel owner announce owner task.toml --committee lung-1 --check --key-file owner.key

    anofel owner announce owner task.toml --committee lung-1 --key-file owner.key
    """
    from anofel.board.size_classes import size_class_of
    from anofel.board.waits import POSTED
    from anofel.models.integer_model import IntegerModel
    from anofel.roles.committee_names import check_members, find_committee, is_there
    from anofel.roles.owner import Own, Owner
    from anofel.tasks.confirmations import check_confirmed
    from anofel.tasks.task import Task

    loaded = Task.load(task)
    check_confirmed(task)
    if loaded.insecure_unproven_contributions:
        warn_insecure(
            "contributions are unproven; one client can spoil or poison every sum, and audits say so"
        )
    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        owner = Owner(found, board, note)
        board.sync()
        first = None if first_model is None else IntegerModel.load(first_model)
        own = Own(rule=rule, trainer=trainer, first=first)
        owner.check_own(loaded, own)  # before a wait that may be long
        if not check:
            board.wait_for(
                lambda state: is_there(state, committee),
                f"the committee '{committee}', whose members make it with anofel aggregator keygen",
                seconds=wait,
                on_wait=owner.say,
            )
        chosen = find_committee(board.state, committee)
        if member:
            check_members(board.state, chosen, member)
        members = ", ".join(entry.name for entry in board.state.members_of(chosen.current))
        note(
            f"The committee {chosen.key_id.hex()[:16]}…: {members}; {chosen.current.threshold} of them open "
            "a sum."
        )
        if check:
            owner.check(loaded, chosen.key_id, early_end=early_end, own=own)
            size = board.genesis.classes[size_class_of(board.genesis.classes, loaded)]
            fits = {"name": loaded.name, "accepted": True, "max_posts": size.max_posts}
            fits |= {"max_length": size.max_length, "registered_clients": len(board.state.clients)}
            show("Task", fits, as_json=as_json)
            return
        board.wait_for(
            lambda state: len(state.clients) >= clients,
            f"{clients} clients to be registered on the board; each joins by its certifier's invitation",
            seconds=wait,
            on_wait=owner.say,
        )
        task_id = owner.announce(loaded, chosen.key_id, early_end=early_end, own=own)
        say_what_a_trainer_may(trainer)
        board.wait_for(
            lambda state: task_id in state.tasks,
            f"the announcement to be on the board ({board.lasting(POSTED)})",
            seconds=wait,
            on_wait=owner.say,
        )
        shown = {"task": task_id.hex(), "name": loaded.name, "committee": chosen.key_id.hex()}
        show("Task", shown, as_json=as_json)


@app.command()
def run(
    directory: Directory,
    validation: Annotated[
        Path | None, typer.Option(help="Rows of your own, by the task's schema, to measure every model on.")
    ] = None,
    end_after: Annotated[
        int,
        typer.Option(
            help="Ask for its end after so many posts, in force once all have posted; 0: never.", min=0
        ),
    ] = 0,
    reject_rise: Annotated[
        float | None,
        typer.Option(
            help="Reject a model whose loss on the validation rows is higher by more than this.",
            min=0,
            show_default="never",
        ),
    ] = None,
    hold: Annotated[
        bool,
        typer.Option("--hold", help="Leave when a sum came, before its model is posted, so that you decide."),
    ] = False,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open iterations and make the models, until the task ends, SIGTERM or Ctrl-C; then show the status.

    Example: anofel owner run owner --validation held-out.csv --key-file owner.key
    """
    from anofel.roles.owner import Owner
    from anofel.studies.load import load_file

    if reject_rise is not None and validation is None:
        raise WrongUsage("--reject-rise needs rows to measure by: --validation.")
    with at_work(directory, ROLE, key_file, passphrase_file, daemon=True) as (found, board):
        owner = Owner(found, board, note, end_after=end_after, reject_rise=reject_rise, hold=hold)
        if validation is not None:
            owner.measure_on(load_file(validation, owner.task.schema))
        with until_stopped():
            owner.run()
        _show(f"The task {owner.task.name}", owner.status(), as_json=as_json)


@app.command()
def reject(
    directory: Directory,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reject the model that the last sum made, before the next iteration opens; the former one stays.

    The release counts all the same. See anofel owner run --hold.

    Example: anofel owner reject owner --key-file owner.key
    """
    from anofel.roles.owner import Owner

    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        owner = Owner(found, board, note)
        board.sync(on_block=owner.observe)
        owner.reject()
        owner.run(seconds=wait)
        _show("Task", owner.status(), as_json=as_json)


@app.command()
def close(
    directory: Directory,
    wait: WaitOption = 600,
    key_file: KeyFileOption = None,
    passphrase_file: PassphraseFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the task for good; an iteration under way still runs to its outcome.

    Example: anofel owner close owner --key-file owner.key
    """
    from anofel.roles.owner import Owner

    with at_work(directory, ROLE, key_file, passphrase_file) as (found, board):
        owner = Owner(found, board, note)
        owner.close()
        owner.run(seconds=wait)
        _show("Task", owner.status(), as_json=as_json)


add_status(app, ROLE, ROLE, of_owner)
