"""The client: a few steps of gradient descent."""

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from torch_app.task import make_network

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Train on rows made up for this partition."""
    network = make_network()
    network.load_state_dict(msg.content["arrays"].to_torch_state_dict())
    generator = torch.Generator().manual_seed(int(context.node_config["partition-id"]))
    features = torch.randn(32, 5, generator=generator)
    labels = (features.sum(dim=1) > 0).long()
    optimiser = torch.optim.SGD(network.parameters(), lr=msg.content["config"]["lr"])
    for _ in range(4):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(features), labels).backward()
        optimiser.step()
    metrics = MetricRecord({"num-examples": len(features)})
    content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
    return Message(content=content, reply_to=msg)
