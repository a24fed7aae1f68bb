# What scripts do between the run and a program. Nothing of it may look like a program that has lost the shim.
(exit 3)
sleep 100 & kill $!
wait
date > /dev/null
timeout 0.1 sleep 100
ldd /bin/sh > /dev/null
/nowhere/at/all 2> /dev/null
setsid sleep 0
nohup true 2> /dev/null
python3 -c '
import multiprocessing, os, subprocess
for method in ("fork", "spawn"):
    process = multiprocessing.get_context(method).Process(target=os.getpid)
    process.start()
    process.join()
subprocess.run(["true"], env={})
os.system("true; exit 3")
os.popen("true").read()
for status in (0, 5):
    child = os.fork()
    if child == 0: os._exit(status)
    os.waitpid(child, 0)
'
true | cat
exec true
