import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { linkSonames, unpackedMpi } from "./unpacked-mpi.mjs";

describe("an unpacked MPI", () => {
  const root = mkdtempSync(join(tmpdir(), "halfstep-mpi-"));
  afterAll(() => rmSync(root, { recursive: true }));
  const prefix = join(root, "usr");
  const library = join(prefix, "lib", "x86_64-linux-gnu");
  const apart = join(prefix, "lib", "libpsm1");
  for (const folder of [apart, library]) mkdirSync(folder, { recursive: true });

  it("is found by the variables of its launcher, behind libraries that are asked for", () => {
    const expected = {
      PATH: `${join(prefix, "bin")}:/usr/bin`,
      LD_LIBRARY_PATH: `/own:${apart}:${library}`,
      OPAL_PREFIX: prefix,
      PMIX_MCA_pcompress_base_silence_warning: "1",
    };
    const env = { PATH: "/usr/bin", LD_LIBRARY_PATH: "/own" };
    expect(unpackedMpi(prefix, env)).toEqual(expected);
    expect(unpackedMpi(prefix, {})).toMatchObject({
      ...{ PATH: join(prefix, "bin"), LD_LIBRARY_PATH: `${apart}:${library}` },
    });
    const settings = join(root, "etc", "openmpi");
    mkdirSync(settings, { recursive: true });
    writeFileSync(join(settings, "openmpi-mca-params.conf"), "");
    expect(unpackedMpi(prefix, { ...env, HOME: "/home/a" })).toMatchObject({
      OMPI_MCA_mca_base_param_files: `/home/a/.openmpi/mca-params.conf,${settings}/openmpi-mca-params.conf`,
    });
  });

  it("gets the names of its libraries by ldconfig", () => {
    expect(linkSonames(prefix)).toBeUndefined();
  });
});
