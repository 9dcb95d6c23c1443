"""Models as ONNX, the format that other programs run: the schema's rules and the network in one graph.

A table has one input per column of the schema, each of one column: numbers as 64-bit floats, missing ones as
NaN; categories as texts, missing ones empty. Images are unsigned bytes, as in a file of images. The outputs
are ``probabilities`` (one column per class) and ``label`` (the likeliest class). Rules, in the same words in
``docs/networks.md``:

1. A graph computes what ``anofel predict`` computes, with the rounding of the features.
2. A row that ``anofel predict`` refuses has probabilities that are no numbers: a graph cannot refuse.
3. A trainer of one's own that is not PyTorch has no graph to export.
"""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anofel.errors import InvalidInput
from anofel.learning.classifier import Classifier
from anofel.learning.dense import DenseNetwork
from anofel.learning.federated import FedAvg, FedSGD
from anofel.models.parameters import Parameters
from anofel.tasks.schema import CategoryColumn, ImageSchema, NumberColumn, TableSchema

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

_OPSET: Final = 18
_ML_OPSET: Final = 3
_MISSING_TEXTS: Final = ("", "NA", "NaN", "nan", "null", "none", "None")


class OnnxMissing(InvalidInput):
    """The packages that write ONNX are not installed."""

    code = "onnx-missing"


class CannotExport(InvalidInput):
    """A model has no form in ONNX."""

    code = "cannot-export"


def to_onnx(classifier: Classifier) -> bytes:
    """Write a model with its preprocessing. Raises ``OnnxMissing`` and ``CannotExport``."""
    try:
        import onnx
    except ImportError:
        raise OnnxMissing("ONNX files need the extra: pip install 'anofel[onnx]'.") from None
    predictor = classifier.predictor
    if isinstance(predictor, FedSGD | FedAvg):
        made = _dense_graph(classifier, predictor.network)
    else:
        made = _torch_graph(classifier)
    onnx.helper.set_model_props(made, _properties(classifier))
    made.producer_name = "anofel"
    onnx.checker.check_model(made, full_check=True)
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def _properties(classifier: Classifier) -> dict[str, str]:
    task = classifier.task
    return {
        "anofel.task": task.name,
        "anofel.task_digest": task.digest().hex(),
        "anofel.model_digest": classifier.model.digest().hex(),
        "anofel.classes": "\n".join(task.schema.label_values),
    }


class _Graph:
    """Nodes and constants as they are added; every node has one output."""

    def __init__(self) -> None:
        from onnx import helper, numpy_helper

        self._helper, self._numpy = helper, numpy_helper
        self.nodes: list[NodeProto] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def take(self, name: str, kind: int, shape: list[Any]) -> str:
        """Add an input."""
        self.inputs.append(self._helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        """Add a constant."""
        name = f"constant{len(self.constants)}"
        self.constants.append(self._numpy.from_array(np.asarray(value, dtype=kind), name))
        return name

    def add(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add a node and give the name of its output."""
        name = output or f"value{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def finish(self, name: str, classes: int) -> "ModelProto":
        """Make the model of everything that was added."""
        from onnx import TensorProto

        helper = self._helper
        outputs = [
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["rows", classes]),
            helper.make_tensor_value_info("label", TensorProto.STRING, ["rows"]),
        ]
        graph = helper.make_graph(self.nodes, name, self.inputs, outputs, self.constants)
        versions = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        made: ModelProto = helper.make_model(graph, opset_imports=versions, ir_version=9)
        return made


def _dense_graph(classifier: Classifier, network: DenseNetwork) -> "ModelProto":
    from onnx import TensorProto

    graph, schema = _Graph(), classifier.task.schema
    if isinstance(schema, TableSchema):
        if schema.target is not None:
            raise CannotExport("Only classes are exported; predict numbers and survival with anofel instead.")
        blocks = [
            _category(graph, column)
            if isinstance(column, CategoryColumn)
            else _number(graph, column, schema.fraction_bits)
            for column in schema.columns
        ]
        features = graph.add("Concat", *blocks, axis=1)
    else:
        if schema.transform != "none":
            raise CannotExport("A scattering transform has no graph to export; predict with anofel instead.")
        images = graph.take("images", TensorProto.UINT8, ["rows", *schema.shape])
        flat = graph.add("Reshape", images, graph.constant([0, -1], np.int64))
        numbers = graph.add("Cast", flat, to=TensorProto.DOUBLE)
        features = graph.add("Mul", numbers, graph.constant(2.0**-schema.fraction_bits))
    logits = _layers(graph, features, network, classifier.model.parameters())
    if network.outputs == 1:
        half = graph.add("Tanh", graph.add("Mul", logits, graph.constant(0.5)))
        positive = graph.add(
            "Mul", graph.add("Add", half, graph.constant(1.0)), graph.constant(0.5)
        )  # as the network computes it
        negative = graph.add("Sub", graph.constant(1.0), positive)
        graph.add("Concat", negative, positive, axis=1, output="probabilities")
    else:
        graph.add("Softmax", logits, axis=1, output="probabilities")
    _label(graph, schema.label_values)
    return graph.finish(classifier.task.name, network.classes)


def _number(graph: _Graph, column: NumberColumn, fraction_bits: int) -> str:
    """Impute, clip, scale and round a number; what is refused becomes NaN."""
    from onnx import TensorProto

    given = graph.take(column.name, TensorProto.DOUBLE, ["rows", 1])
    is_missing = graph.add("IsNaN", given)
    low, high = graph.constant(float(column.low)), graph.constant(float(column.high))
    inside = graph.add("Min", graph.add("Max", given, low), high)
    if column.outside == "refuse":
        # NaN where clipping changed something
        is_same = graph.add("Equal", inside, given)
        inside = graph.add("Where", is_same, given, graph.constant(np.nan))
    value = inside
    if column.missing is not None:
        value = graph.add("Where", is_missing, graph.constant(float(column.missing)), inside)
    else:
        value = graph.add("Where", is_missing, graph.constant(np.nan), inside)
    shifted = graph.add("Sub", value, graph.constant(float(column.offset)))
    scaled = graph.add("Div", shifted, graph.constant(float(column.scale)))
    steps = graph.add("Round", graph.add("Mul", scaled, graph.constant(2.0**fraction_bits)))
    feature = graph.add("Mul", steps, graph.constant(2.0**-fraction_bits))
    if not column.indicator:
        return feature
    indicator = graph.add("Cast", is_missing, to=TensorProto.DOUBLE)
    return graph.add("Concat", feature, indicator, axis=1)


def _category(graph: _Graph, column: CategoryColumn) -> str:
    """Write a value as ones and zeros; an unknown one becomes NaN."""
    from onnx import TensorProto

    given = graph.take(column.name, TensorProto.STRING, ["rows", 1])
    codes = {value: float(index) for index, value in enumerate(column.values)}
    if column.missing is not None:
        codes = dict.fromkeys(_MISSING_TEXTS, codes[column.missing]) | codes
    code32 = graph.add(
        "LabelEncoder",
        given,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_floats=list(codes.values()),
        default_float=float("nan"),
    )
    code = graph.add("Cast", code32, to=TensorProto.DOUBLE)
    others = graph.constant([[float(index) for index in range(1, len(column.values))]])
    ones = graph.add("Cast", graph.add("Equal", code, others), to=TensorProto.DOUBLE)
    return graph.add("Add", ones, graph.add("Mul", code, graph.constant(0.0)))  # NaN stays NaN


def _layers(graph: _Graph, features: str, network: DenseNetwork, parameters: Parameters) -> str:
    current = features
    for layer in range(network.layers):
        weight = graph.constant(parameters[f"layer{layer}.weight"].T)
        bias = graph.constant(parameters[f"layer{layer}.bias"])
        current = graph.add("Add", graph.add("MatMul", current, weight), bias)
        current = graph.add("Tanh", current) if layer < network.layers - 1 else current
    return current


def _label(graph: _Graph, values: tuple[str, ...]) -> None:
    likeliest = graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    graph.add(
        "LabelEncoder",
        likeliest,
        domain="ai.onnx.ml",
        output="label",
        keys_int64s=list(range(len(values))),
        values_strings=list(values),
    )


def _torch_graph(classifier: Classifier) -> "ModelProto":
    try:
        from anofel.learning.pytorch.onnx_module import export_module
        from anofel.learning.pytorch.trainer import TorchTrainer
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnxscript"):
            raise
        raise OnnxMissing(
            "A network becomes ONNX through PyTorch: pip install 'anofel[onnx,torch]'."
        ) from None
    predictor, schema = classifier.predictor, classifier.task.schema
    if not isinstance(predictor, TorchTrainer) or not isinstance(schema, ImageSchema):  # (3)
        raise CannotExport(
            f"The trainer of task '{classifier.task.name}' is neither one of anofel's nor PyTorch on images, "
            "so it has no graph to export."
        )
    import onnx

    made: ModelProto = export_module(predictor, classifier.model.parameters(), schema)
    graph = _Graph()
    _label(graph, schema.label_values)
    made.graph.node.extend(graph.nodes)
    made.graph.output.append(onnx.helper.make_tensor_value_info("label", onnx.TensorProto.STRING, ["rows"]))
    made.opset_import.append(onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET))
    return made
