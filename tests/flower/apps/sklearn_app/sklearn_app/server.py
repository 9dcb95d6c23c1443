"""The server of an app that trains scikit-learn's logistic regression."""

import numpy as np
from flwr.app import ArrayRecord, Context
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Start FedAvg at zero."""
    first = ArrayRecord([np.zeros((1, 4)), np.zeros(1)])
    FedAvg(fraction_evaluate=0.0).start(
        grid=grid, initial_arrays=first, num_rounds=context.run_config["num-server-rounds"]
    )
