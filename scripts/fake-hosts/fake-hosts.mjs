import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Hosts on this machine: network namespaces on a bridge, whose links have a rate. Needs root, and `ip` and `tc` of iproute2.

/** @param {string} command @param {string} line */
const run = (command, line) =>
  execFileSync(command, line.split(" "), { stdio: ["ignore", "ignore", "pipe"], encoding: "utf8" });

/** Runs a command that may fail, such as the removal of what is not there. */
const tryToRun = (command, line) => {
  try {
    run(command, line);
  } catch {
    // There was nothing to remove.
  }
};

/**
 * Makes hosts with `ranks` ranks each.
 * @param {number} count
 * @param {{ ranks?: number, megabits?: number }} [options]
 * @returns {import("./fake-hosts.mjs").FakeHosts}
 * @throws Error where this process may not make network namespaces
 */
export function fakeHosts(count, { ranks = 1, megabits } = {}) {
  // Names of interfaces have at most 15 characters.
  const prefix = `hs${process.pid % 100_000}h`;
  const bridge = `${prefix}b`;
  // Of this process. The bridge, where the launcher runs, has the last address.
  const network = `10.77.${process.pid % 256}`;
  const hosts = Array.from({ length: count }, (_, i) => i + 1);
  const linkOf = (host) => `${prefix}v${host}`;
  const close = () => {
    for (const host of hosts) {
      tryToRun("ip", `netns del ${prefix}${host}`);
      tryToRun("ip", `link del ${linkOf(host)}`);
    }
    tryToRun("ip", `link del ${bridge}`);
  };
  const setRate = (rate) => {
    // Shorter bursts than a few of the largest packets drop most of them, and longer queues make TCP send again what is still on its way.
    const rule =
      rate === undefined ? "pfifo limit 1000" : `tbf rate ${rate}mbit burst 256kb latency 50ms`;
    for (const host of hosts) {
      run("tc", `qdisc replace dev ${linkOf(host)} root ${rule}`);
      run("tc", `-n ${prefix}${host} qdisc replace dev eth0 root ${rule}`);
    }
  };
  try {
    run("ip", `link add ${bridge} type bridge`);
    run("ip", `addr add ${network}.254/24 dev ${bridge}`);
    run("ip", `link set ${bridge} up`);
    for (const host of hosts) {
      const name = `${prefix}${host}`;
      run("ip", `netns add ${name}`);
      run("ip", `link add ${linkOf(host)} type veth peer name eth0 netns ${name}`);
      run("ip", `link set ${linkOf(host)} master ${bridge} up`);
      run("ip", `-n ${name} link set lo up`);
      run("ip", `-n ${name} addr add ${network}.${host}/24 dev eth0`);
      run("ip", `-n ${name} link set eth0 up`);
    }
    if (megabits !== undefined) setRate(megabits);
  } catch (error) {
    close();
    throw new Error(
      `hosts by network namespaces need root, and ip and tc of iproute2: ${error.stderr || error.message}`,
    );
  }
  return {
    launch: [
      ...["--mca", "plm_rsh_agent", fileURLToPath(new URL("agent.sh", import.meta.url))],
      ...["--mca", "btl", "self,vader,tcp"],
      ...["--mca", "btl_tcp_if_include", `${network}.0/24`],
      ...["--mca", "oob_tcp_if_include", `${network}.0/24`],
      // Requests for data wait behind data otherwise, so that two ranks send one after the other.
      ...["--mca", "btl_tcp_flags", "1"],
      ...["--mca", "btl_tcp_sndbuf", "65536", "--mca", "btl_tcp_rcvbuf", "131072"],
      // A launcher that has lost a host waits for it otherwise: it notices within four seconds, unless it has sent something meanwhile.
      ...["--mca", "oob_tcp_keepalive_time", "2", "--mca", "oob_tcp_keepalive_intvl", "1"],
      ...["--mca", "oob_tcp_keepalive_probes", "2"],
      ...["--bind-to", "none", "-n", `${count * ranks}`],
      ...["--host", hosts.map((host) => `${network}.${host}:${ranks}`).join()],
    ],
    env: { HALFSTEP_FAKE_HOSTS: prefix },
    setRate,
    cut: (host) => run("ip", `link set ${linkOf(host)} down`),
    // What a host sends, its end on the bridge receives.
    sentBytes: (host) =>
      Number(readFileSync(`/sys/class/net/${linkOf(host)}/statistics/rx_bytes`, "utf8")),
    close,
  };
}
