import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

// An MPI of Debian or Ubuntu whose packages were unpacked outside /usr.

/** The folders in `lib` of a prefix: that of the architecture, and those of packages with libraries apart. */
const libraryFolders = (prefix) =>
  readdirSync(join(prefix, "lib"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(prefix, "lib", name))
    .sort();

/**
 * Variables by which a launcher and its ranks find what was unpacked: programs, libraries, and the components and settings of Open MPI.
 * @param {string} prefix the unpacked `/usr`
 * @param {Record<string, string | undefined>} env
 * @returns {Record<string, string>}
 */
export const unpackedMpi = (prefix, env) => {
  const folders = libraryFolders(prefix);
  // Without the distribution's defaults Open MPI would open components that its packages exclude.
  const defaults = join(prefix, "..", "etc", "openmpi", "openmpi-mca-params.conf");
  const files = [env.HOME && join(env.HOME, ".openmpi", "mca-params.conf"), defaults];
  return {
    PATH: [join(prefix, "bin"), env.PATH].filter(Boolean).join(delimiter),
    LD_LIBRARY_PATH: [env.LD_LIBRARY_PATH, ...folders].filter(Boolean).join(delimiter),
    OPAL_PREFIX: prefix,
    // PMIx looks for its compression in /usr alone, and would say so at each start.
    PMIX_MCA_pcompress_base_silence_warning: "1",
    ...(existsSync(defaults) && { OMPI_MCA_mca_base_param_files: files.filter(Boolean).join() }),
  };
};

/**
 * Gives libraries the names by which others load them. Packages do that as root when they are installed, where several provide one library.
 * @param {string} prefix the unpacked `/usr`
 * @returns {string | undefined} a description of the failure, if there is one
 */
export const linkSonames = (prefix) => {
  const { status, error, stderr } = spawnSync("/sbin/ldconfig", ["-n", ...libraryFolders(prefix)], {
    encoding: "utf8",
  });
  return status === 0 ? undefined : `ldconfig: ${error?.message ?? stderr.trim()}`;
};
