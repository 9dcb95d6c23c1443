"""The server of an app as they were before the message API."""

import numpy as np
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server import strategy as strategies


def server_fn(context: Context) -> ServerAppComponents:
    """Give strategy and rounds."""
    config = context.run_config
    settings = {
        "fraction_evaluate": 0.0,
        "initial_parameters": ndarrays_to_parameters([np.zeros((2, 1)), np.zeros(1)]),
        "on_fit_config_fn": lambda number: {"lr": config["learning-rate"], "server_round": number},
    }
    if config["strategy"] == "FedProx":
        settings["proximal_mu"] = 0.5
    if config["strategy"] == "FedAvgM":
        settings |= {"server_learning_rate": 1.0, "server_momentum": 0.5}
    made = getattr(strategies, config["strategy"])(**settings)
    return ServerAppComponents(strategy=made, config=ServerConfig(num_rounds=config["num-server-rounds"]))


app = ServerApp(server_fn=server_fn)
