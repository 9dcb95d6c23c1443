"""What AnoFel §5 says of its own run: 512 clients, 8 threads, a toy key of about 256 bits."""

from dataclasses import dataclass

PROOF_SECONDS = 1.25
"""A client's proof of an iteration."""


@dataclass(frozen=True)
class Quoted:
    """One of its three benchmarks."""

    kind: str
    data: str
    training: float
    """Seconds for 1,024 images on a GPU."""
    proof_share: float
    """Of a client's whole time in an iteration, training included."""
    client_bytes: float
    aggregator: float
    """Seconds for adding and partial decryption."""

    @property
    def client(self) -> float:
        """A client's whole time, derived from the proof's share; the text says 3.2 s for MNIST only."""
        return PROOF_SECONDS / self.proof_share

    @property
    def beside_training(self) -> float:
        """Seconds of proof and encryption; derived."""
        return self.client - self.training


BENCHMARKS = {
    61_706: Quoted("lenet5", "MNIST", 0.616, 0.39, 9.2e6, 13.3),
    273_258: Quoted("resnet20-gn", "CIFAR-10", 0.791, 0.17, 41e6, 56.8),
    832_456: Quoted("squeezenet-gn", "TinyImageNet", 1.276, 0.07, 124e6, 174.6),
}
"""By the number of parameters."""
