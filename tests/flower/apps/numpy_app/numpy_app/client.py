"""The client: linear regression by gradient steps on rows of its own."""

import os
import socket
import time

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

app = ClientApp()


def rows_of(partition: int) -> tuple[np.ndarray, np.ndarray]:
    """Make the rows of a partition up; every partition has as many."""
    rng = np.random.default_rng(partition)
    features = rng.normal(size=(20, 3)).astype(np.float32)
    wanted = features @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25
    return features, wanted.astype(np.float32)


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Train, or misbehave as the node's settings say."""
    node = context.node_config
    how = node.get(f"misbehave-{node.get('partition-id')}", node.get("misbehave", ""))
    misbehave(str(how), str(node.get("anofel-rows", "")))
    features, wanted = rows_of(int(context.node_config["partition-id"]))
    weight, bias = (array.copy() for array in msg.content["arrays"].to_numpy_ndarrays())
    start = weight.copy()
    config = msg.content["config"]
    for _ in range(5):
        error = features @ weight + bias - wanted
        weight -= config["lr"] * (
            features.T @ error / len(features) + config.get("proximal-mu", 0.0) * (weight - start)
        )
        bias -= config["lr"] * error.mean(axis=0)
    print("what an app prints must not disturb its answers")
    content = RecordDict(
        {
            "arrays": ArrayRecord([weight.astype(np.float32), bias.astype(np.float32)]),
            "metrics": MetricRecord({"num-examples": len(features), "loss": float((error**2).mean())}),
        }
    )
    return Message(content=content, reply_to=msg)


def misbehave(how: str, rows: str) -> None:
    """Do what an app must not be able to do, or must not be harmed by."""
    if how.startswith("look "):
        raise ValueError("seen" if os.path.exists(how[5:]) else "not seen")
    if how.startswith("call "):
        try:
            socket.create_connection(("127.0.0.1", int(how[5:])), timeout=5).close()
        except OSError:
            raise ValueError("not reached") from None
        raise ValueError("reached")
    if how == "environment":
        raise ValueError(" ".join(sorted(os.environ)))
    if how == "raise":
        raise ValueError("row 3 is odd")
    if how == "hang":
        time.sleep(3600)
    if how.startswith("tell "):
        with open(how[5:], "w") as file:
            file.write(rows if os.path.exists(rows) else "")
        time.sleep(3600)
    if how.startswith("fork "):
        child = os.fork()
        if child == 0:
            time.sleep(3600)
        with open(how[5:], "w") as file:
            file.write(str(child))
        time.sleep(3600)
    if how == "die":
        os._exit(7)
    if how == "memory":
        np.ones(1 << 33, np.uint8)
    if how == "nonsense":
        for descriptor in range(3, 32):
            try:
                os.write(descriptor, b"nonsense" * 64)
            except OSError:
                continue
        os._exit(0)
