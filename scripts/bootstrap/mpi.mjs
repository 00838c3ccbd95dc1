import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { machine } from "./driver.mjs";
import { installCommands, installPackages } from "./install-packages.mjs";
import { packagesFolder, unpackPackages } from "./unpack-packages.mjs";
import { linkSonames, unpackedMpi } from "./unpacked-mpi.mjs";

// Open MPI, and MPICH for the tests: those of the machine, or installed as the software driver is.

const kinds = {
  openmpi: {
    package: "openmpi-bin",
    launchers: ["mpirun.openmpi", "mpirun"],
    name: "Open MPI",
    says: /Open MPI|OpenRTE/,
  },
  mpich: {
    package: "mpich",
    launchers: ["mpiexec.mpich", "mpiexec.hydra"],
    name: "MPICH",
    says: /HYDRA/,
  },
};

/**
 * @typedef Mpi
 * @property {string} launcher its mpirun
 * @property {Record<string, string>} env variables for the launcher and for its ranks
 */

/**
 * Finds an MPI, and installs it on Debian and Ubuntu where there is none: by apt for root, else unpacked into the user's cache.
 * @param {keyof typeof kinds} kind
 * @param {(line: string) => void} say
 * @returns {Promise<Mpi | { missing: string }>}
 */
export const prepareMpi = async (kind, say) => {
  const found = findMpi(kind);
  if (found) return found;
  const { name, package: wanted } = kinds[kind];
  const { platform, root, mayInstall, apt, sources } = machine();
  const folder = packagesFolder(kind);
  const byHand = `${name} is not installed (mpirun): install it with your system's packages, such as ${wanted} of Debian`;
  if (platform !== "linux" || !apt || !mayInstall || (!root && !folder)) return { missing: byHand };
  say(
    `${name} is not installed; ${root ? "installing it with apt" : "unpacking it into your cache"} (HALFSTEP_NO_INSTALL=1 forbids this)`,
  );
  const failure = root
    ? await installPackages({ commands: installCommands([wanted]) }, say)
    : await unpackPackages(folder, {
        ...{ packages: [wanted], label: `fetching ${name}`, sources },
        complete: (partial) => linkSonames(join(partial, "root", "usr")),
      });
  return findMpi(kind) ?? { missing: failure ?? byHand };
};

/** The MPI of the machine, or the one in the user's cache. */
function findMpi(kind) {
  const { launchers, says } = kinds[kind];
  const isRight = (launcher, env) => {
    const { stdout } = spawnSync(launcher, ["--version"], {
      env: { ...process.env, ...env },
      encoding: "utf8",
    });
    return says.test(stdout ?? "");
  };
  const folder = packagesFolder(kind);
  const root = folder && join(folder, "root", "usr");
  const places = [
    ...launchers.map((launcher) => ({ launcher, env: asRoot() })),
    ...(root && existsSync(root)
      ? launchers.map((name) => ({
          launcher: join(root, "bin", name),
          env: { ...asRoot(), ...unpackedMpi(root, process.env) },
        }))
      : []),
  ];
  return places.find(({ launcher, env }) => isRight(launcher, env));
}

/** Open MPI refuses root unless both variables are set. */
const asRoot = () =>
  process.getuid?.() === 0
    ? { OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1" }
    : {};
