"""The server of an app that trains a small network of PyTorch."""

from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from torch_app.task import make_network

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Start FedAvg at a network with public weights."""
    FedAvg(fraction_evaluate=0.0).start(
        grid=grid,
        initial_arrays=ArrayRecord(make_network().state_dict()),
        train_config=ConfigRecord({"lr": context.run_config["learning-rate"]}),
        num_rounds=context.run_config["num-server-rounds"],
    )
