# %% [markdown]
# # Latency of three networks
#
# Each cell takes a second or two. Change a number and run it again. Times are virtual: they do not depend on your host.

# %%
import matplotlib.pyplot as plt

import apenet

apenet.machine("ape16")

# %% [markdown]
# The network, with rate and latency of its links. The classes (*published*, *derived*, *fitted*, *assumed*) say where
# a number comes from.

# %%
apenet.machine("ape16").plot()

# %% [markdown]
# Half the round trip of a message between neighbours, without MPI.

# %%
figure, axes = plt.subplots()
for name in ("ape16", "extoll-64", "pax"):
    result = apenet.bench.pingpong(apenet.machine(name), sizes="16:64K")
    axes.loglog(result.sizes_bytes, result.times_us, marker="o", label=name)
axes.set(xlabel="message (bytes)", ylabel="time (us)")
axes.legend()

# %% [markdown]
# The same with other numbers: 64 KiB on links of twice the clock, with the bus as it is, and with a faster one.

# %%
faster_links = apenet.machine("ape16", {"network.link.clock_mhz": 230})
both = faster_links.with_settings("bus.clock_mhz=133")
[float(apenet.bench.pingpong(machine, sizes="64K").times_us[0]) for machine in (faster_links, both)]
