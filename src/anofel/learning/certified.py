"""The link between a certificate and training: what is trained on is what was certified, or nothing.

Numbered as in ``docs/training.md``:

1. The digest d covers the canonical bytes of the encoded rows (:mod:`anofel.studies.dataset`).
2. A client trains through :class:`CertifiedDataset`, which refuses rows with another digest.
"""

from dataclasses import dataclass

from anofel.errors import VerificationError
from anofel.primitives import DatasetDigest
from anofel.studies.dataset import Dataset, canonical_chunks


class NotTheCertifiedDataset(VerificationError):
    """The rows at hand are not the certified ones."""

    code = "not-the-certified-dataset"


def dataset_digest(dataset: Dataset) -> DatasetDigest:
    """Compute d over the canonical bytes (1)."""
    return DatasetDigest.of_chunks(canonical_chunks(dataset))


@dataclass(frozen=True, eq=False)
class CertifiedDataset:
    """Rows and the digest that was certified; checked when made (2), and nobody writes to them afterwards."""

    dataset: Dataset
    digest: DatasetDigest

    def __post_init__(self) -> None:
        for array in (self.dataset.features, self.dataset.labels):
            array.setflags(write=False)
        if dataset_digest(self.dataset) != self.digest:
            raise NotTheCertifiedDataset(
                "The data differs from what was certified; use the certified file or have this one certified."
            )
