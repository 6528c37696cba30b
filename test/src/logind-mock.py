"""logind as far as Baton speaks with it, on the bus of DBUS_SYSTEM_BUS_ADDRESS: hands out delay locks (real files), says when the
machine will sleep or shut down, and waits for the locks, but no longer than the delay. SIGUSR1: sleep; SIGUSR2: wake;
SIGHUP: shut down. Each thing that happens is a line of JSON on stdout.

usage: logind-mock.py DELAY_MS
"""

import json
import os
import signal
import sys
import time

from gi.repository import Gio, GLib

NAME = "org.freedesktop.login1"
PATH = "/org/freedesktop/login1"
MANAGER = "org.freedesktop.login1.Manager"
INTERFACE = """<node><interface name="org.freedesktop.login1.Manager">
  <method name="Inhibit">
    <arg direction="in" type="s" name="what"/><arg direction="in" type="s" name="who"/>
    <arg direction="in" type="s" name="why"/><arg direction="in" type="s" name="mode"/>
    <arg direction="out" type="h" name="lock"/>
  </method>
  <property name="InhibitDelayMaxUSec" type="t" access="read"/>
  <property name="PreparingForSleep" type="b" access="read"/>
  <signal name="PrepareForSleep"><arg type="b" name="start"/></signal>
  <signal name="PrepareForShutdown"><arg type="b" name="start"/></signal>
</interface></node>"""

delay_ms = int(sys.argv[1])
locks = set()
going_since = None
asleep = False
gone_timer = None
bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)


def tell(**happened):
    print(json.dumps(happened), flush=True)


def emit(name, start):
    bus.emit_signal(None, PATH, MANAGER, name, GLib.Variant("(b)", (start,)))


def inhibit(invocation, what, who, why, mode):
    reader, writer = os.pipe()
    lock = {"what": what, "who": who, "mode": mode}
    locks.add(reader)

    def released(_source, _condition):
        os.close(reader)
        locks.discard(reader)
        after_ms = None if going_since is None else round((time.monotonic() - going_since) * 1000)
        tell(t="released", after_ms=after_ms, left=len(locks))
        if going_since is not None and not locks:
            sleep(len(locks))
        return False

    # All write ends are closed: whoever had the lock let go, or died.
    GLib.unix_fd_add_full(GLib.PRIORITY_DEFAULT, reader, GLib.IOCondition.HUP, lambda fd, c: released(fd, c))
    fds = Gio.UnixFDList.new()
    fds.append(writer)
    os.close(writer)
    invocation.return_value_with_unix_fd_list(GLib.Variant("(h)", (0,)), fds)
    tell(t="inhibited", **lock)


def go(name):
    global going_since, gone_timer
    if going_since is not None or asleep:
        return
    going_since = time.monotonic()
    emit(name, True)
    tell(t="going", signal=name, locks=len(locks))
    if locks:
        gone_timer = GLib.timeout_add(delay_ms, lambda: sleep(len(locks)))
    else:
        sleep(0)


def sleep(held):
    global going_since, asleep, gone_timer
    if going_since is None:
        return False
    if gone_timer is not None and held == 0:
        GLib.source_remove(gone_timer)
    gone_timer = None
    tell(t="asleep", after_ms=round((time.monotonic() - going_since) * 1000), held=held)
    going_since = None
    asleep = True
    return False


def wake():
    global asleep
    if asleep:
        asleep = False
        emit("PrepareForSleep", False)
        tell(t="awake")


def call(_connection, _sender, _path, _interface, _method, parameters, invocation):
    inhibit(invocation, *parameters.unpack())


def read(_connection, _sender, _path, _interface, name):
    if name == "InhibitDelayMaxUSec":
        return GLib.Variant("t", delay_ms * 1000)
    return GLib.Variant("b", going_since is not None or asleep)


def on(number, react):
    def again():
        react()
        return True

    GLib.unix_signal_add(GLib.PRIORITY_HIGH, number, again)


bus.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0], call, read, None)
Gio.bus_own_name_on_connection(
    bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: tell(t="ready"), lambda *_: sys.exit("the name is taken")
)
on(signal.SIGUSR1, lambda: go("PrepareForSleep"))
on(signal.SIGUSR2, wake)
on(signal.SIGHUP, lambda: go("PrepareForShutdown"))
GLib.MainLoop().run()
