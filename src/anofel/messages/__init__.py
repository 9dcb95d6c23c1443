"""The messages of the board: typed views over bytes that the core reads and writes.

    posting = make_posting(EndTask(task=task), ChainAuthor(chain), genesis.hash, sign)
    assert Posting.from_bytes(posting.data) == posting

Every class here stands for one layout of ``docs/messages.md`` and has its name and fields. Some
share their name with a value of ``anofel.primitives``; write ``messages.CertifierKey``.
"""

from anofel.messages.aggregation import Aggregate, CountShare, Exclusion, GroupSum, SumShare
from anofel.messages.blobs import Blob, Receipt, receipt_bytes
from anofel.messages.blocks import Block, EngineBlock, EngineVote, Header, Seal, Vote
from anofel.messages.certifiers import CertifierKeyOffer, RevokeCertifier
from anofel.messages.clients import Registration, Submission, SubmittedPart
from anofel.messages.committees import CommitteeKeyVote, DkgRound, HandoverTerms, Run
from anofel.messages.genesis import Class, Genesis, Limits, Validator, binding_bytes
from anofel.messages.postings import (
    Body,
    ChainAuthor,
    KeyAuthor,
    Posting,
    StatedAuthor,
    make_posting,
)
from anofel.messages.tasks import EndIteration, EndTask, Model, PrivacyLedger, RejectModel, TaskAnnouncement
from anofel.messages.validators import ChangeValidators, NewValidator, SignChange
from anofel.messages.view import View

__all__ = [
    "Aggregate",
    "Blob",
    "Block",
    "Body",
    "CertifierKeyOffer",
    "ChainAuthor",
    "ChangeValidators",
    "Class",
    "CommitteeKeyVote",
    "CountShare",
    "DkgRound",
    "EndIteration",
    "EndTask",
    "EngineBlock",
    "EngineVote",
    "Exclusion",
    "Genesis",
    "GroupSum",
    "HandoverTerms",
    "Header",
    "KeyAuthor",
    "Limits",
    "Model",
    "NewValidator",
    "Posting",
    "PrivacyLedger",
    "Receipt",
    "Registration",
    "RejectModel",
    "RevokeCertifier",
    "Run",
    "Seal",
    "SignChange",
    "StatedAuthor",
    "Submission",
    "SubmittedPart",
    "SumShare",
    "TaskAnnouncement",
    "Validator",
    "View",
    "Vote",
    "binding_bytes",
    "make_posting",
    "receipt_bytes",
]
