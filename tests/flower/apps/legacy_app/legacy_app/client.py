"""The client: a NumPyClient that fits a line."""

import numpy as np
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context


class Line(NumPyClient):
    """Least squares by gradient steps."""

    def __init__(self, partition: int) -> None:
        rng = np.random.default_rng(partition)
        self.features = rng.normal(size=(10, 2))
        self.wanted = self.features @ np.array([[2.0], [-1.0]]) + 1.0

    def fit(self, parameters, config):
        """Train."""
        weight, bias = (array.copy() for array in parameters)
        for _ in range(5):
            error = self.features @ weight + bias - self.wanted
            pull = config.get("proximal_mu", 0.0) * (weight - parameters[0])
            weight -= config["lr"] * (self.features.T @ error / len(self.features) + pull)
            bias -= config["lr"] * error.mean(axis=0)
        return [weight, bias], len(self.features), {"loss": float((error**2).mean())}


def client_fn(context: Context):
    """Make the client of a partition."""
    return Line(int(context.node_config["partition-id"])).to_client()


app = ClientApp(client_fn=client_fn)
