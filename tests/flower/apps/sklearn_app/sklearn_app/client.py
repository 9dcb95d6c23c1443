"""The client: a warm start, one epoch, and the coefficients."""

import warnings

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from sklearn.linear_model import LogisticRegression

app = ClientApp()


@app.train()
def train(msg: Message, context: Context) -> Message:
    """Train on rows made up for this partition."""
    rng = np.random.default_rng(100 + int(context.node_config["partition-id"]))
    features = rng.normal(size=(40, 4))
    labels = (features @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=40) > 0).astype(int)
    model = LogisticRegression(max_iter=2, warm_start=True)
    model.classes_ = np.array([0, 1])
    model.coef_, model.intercept_ = msg.content["arrays"].to_numpy_ndarrays()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(features, labels)
    metrics = MetricRecord({"num-examples": len(features), "accuracy": float(model.score(features, labels))})
    content = RecordDict({"arrays": ArrayRecord([model.coef_, model.intercept_]), "metrics": metrics})
    return Message(content=content, reply_to=msg)
