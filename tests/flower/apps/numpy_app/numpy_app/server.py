"""The server of an app of the message API, without a framework."""

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp import strategy as strategies

app = ServerApp()


class Own(strategies.FedAvg):
    """Would look at single updates."""


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Start a strategy and keep its model."""
    config = context.run_config
    settings = {"fraction_evaluate": 0.0, "weighted_by_key": "num-examples"}
    if config["strategy"] == "FedProx":
        settings["proximal_mu"] = 0.5
    if config["strategy"] == "FedAvgM":
        settings |= {"server_learning_rate": 0.5, "server_momentum": 0.9}
    if config["strategy"] == "FedAdam":
        settings |= {"eta": 0.05, "tau": 0.01}
    if config["strategy"] == "FedYogi":
        settings |= {"eta": 0.05, "tau": 0.01}
    first = ArrayRecord([np.zeros((3, 1), np.float32), np.zeros(1, np.float32)])
    if config["strategy"] == "own loop":
        grid.send_and_receive([])
    if config["strategy"] == "integers":
        first = ArrayRecord([np.zeros(3, np.int64)])
    if config["strategy"] in ("subclass", "replaced", "integers"):
        made = Own() if config["strategy"] == "subclass" else strategies.FedAvg()
    else:
        made = getattr(strategies, config["strategy"])(**settings)
    if config["strategy"] == "replaced":
        made.aggregate_train = print
    made.start(
        grid=grid,
        initial_arrays=first,
        train_config=ConfigRecord({"lr": config["learning-rate"]}),
        num_rounds=config["num-server-rounds"],
    )
