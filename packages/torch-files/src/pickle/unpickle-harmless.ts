import { quote, TorchFileError } from "../error.js";
import { type Pickled, type PicklePlace, unpickle } from "./unpickle.js";

/** Names that run commands or code where Python loads the pickle: modules, or single functions of modules. */
const dangerous: readonly string[] = [
  ..."os posix nt subprocess sys shutil pty socket runpy importlib ctypes code codeop".split(" "),
  ..."pickle _pickle dill cloudpickle marshal webbrowser asyncio pdb bdb timeit cProfile".split(
    " ",
  ),
  ..."multiprocessing http urllib requests types.CodeType types.FunctionType".split(" "),
  ..."eval exec compile open __import__ breakpoint globals vars input"
    .split(" ")
    .flatMap((name) => [`builtins.${name}`, `__builtin__.${name}`]),
  ..."torch.hub torch.load torch.serialization.load".split(" "),
];

/**
 * {@link unpickle}, and refuses pickles that run commands or code where Python loads them. Here they would run nothing: the file was made
 * to be opened elsewhere.
 * @throws TorchFileError that names the function
 */
export function unpickleHarmless(bytes: Uint8Array, place: PicklePlace): Pickled {
  const pickled = unpickle(bytes, place);
  for (const { path } of pickled.globals)
    if (dangerous.some((name) => path === name || path.startsWith(`${name}.`)))
      throw new TorchFileError(
        "hostile",
        `the pickle names ${quote(path)}, which runs commands or code where Python loads the file. Nothing was run here: do not open the file with torch.load(), and get the weights elsewhere, best as safetensors`,
        { source: place.source },
      );
  return pickled;
}
