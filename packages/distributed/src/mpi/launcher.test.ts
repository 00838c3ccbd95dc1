import { describe, expect, it } from "vitest";
import { libraryFiles } from "./families.js";
import { launchedRank } from "./launcher.js";

describe("the place of a process in its job", () => {
  it("is read from the variables of each launcher", () => {
    const openMpi = {
      OMPI_COMM_WORLD_RANK: "3",
      OMPI_COMM_WORLD_SIZE: "4",
      OMPI_COMM_WORLD_LOCAL_RANK: "1",
    };
    expect(launchedRank(openMpi)).toMatchObject({
      rank: 3,
      size: 4,
      localRank: 1,
      family: "Open MPI",
    });
    const mpich = { PMI_RANK: "0", PMI_SIZE: "2", MPI_LOCALRANKID: "0" };
    expect(launchedRank(mpich)).toMatchObject({ rank: 0, size: 2, localRank: 0, family: "MPICH" });
    const torch = { RANK: "1", WORLD_SIZE: "2" };
    expect(launchedRank(torch)).toMatchObject({ rank: 1, size: 2, localRank: undefined });
    expect(launchedRank({})).toBeUndefined();
    expect(launchedRank({ RANK: "one", WORLD_SIZE: "2" })).toBeUndefined();
  });

  it("is that of a step of Slurm, not of its batch script", () => {
    const batch = { SLURM_PROCID: "0", SLURM_NTASKS: "8", SLURM_LOCALID: "0" };
    expect(launchedRank(batch)).toBeUndefined();
    const step = { ...batch, SLURM_PROCID: "5", SLURM_STEP_NUM_TASKS: "8" };
    expect(launchedRank(step)).toMatchObject({ rank: 5, size: 8, family: undefined });
  });

  it("says which MPI library to try first", () => {
    expect(libraryFiles("MPICH")[0]).toBe("libmpi.so.12");
    expect(libraryFiles(undefined)[0]).toBe("libmpi.so.40");
    expect(new Set(libraryFiles("MPICH"))).toEqual(new Set(libraryFiles("Open MPI")));
  });
});
