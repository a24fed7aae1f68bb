"""What of the words of Open MPI's launcher a run passes on."""

import pytest

from apenet.host.openmpi_launcher import without_lost_connections

OF_5 = (
    b"[apenet:9999999] PMIX ERROR: PMIX_ERR_UNREACH in file "
    b"/openmpi-5.0.11/3rd-party/openpmix/src/mca/ptl/base/ptl_base_connection_hdlr.c at line 121\n"
)
OF_4 = (
    b"[apenet:9999999] PMIX ERROR: UNREACHABLE in file "
    b"../../../../../src/mca/ptl/base/ptl_base_connection_hdlr.c at line 388\n"
)
HELP = b"No components were able to be opened in the pml framework.\n"
OTHER = b"[apenet:9999999] PMIX ERROR: NO-PERMISSIONS in file gds_ds21_component.c at line 99\n"


@pytest.mark.parametrize("gone", [OF_5, OF_4])
def test_ranks_that_have_gone_while_they_connected_are_not_named(gone):
    """Whether the launcher meets such a rank depends on the host."""
    assert without_lost_connections(gone + HELP + gone + OTHER) == HELP + OTHER
    assert without_lost_connections(gone) == b""
