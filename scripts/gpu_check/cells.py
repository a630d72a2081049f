"""What is measured: cells, each a network and a batch, as "cnn2/64"."""
QUICK_BATCH = 64  # most goals are about it


def cells_of(networks, batches):
    """The smallest batch for all networks first."""
    return [f"{network}/{batch}" for batch in sorted(batches) for network in networks]


def wanted(options):
    """Those that were asked for."""
    return cells_of(options.networks, [QUICK_BATCH] if options.quick else options.batches)
