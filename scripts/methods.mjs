// `npm run gates -- methods`: the packages that run without the entry `@halfstep/tensor` use no method that only this entry adds to tensors.
// Types cannot tell, because the methods are declared for all tensors.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));
const added = "packages/tensor/src/tensor/further-methods.ts";
const isTest = (file) => /\.test(-d)?\.ts$/.test(file);

const uses = [];
for (const name of ["tensor", "nn", "distributed", "models"]) {
  const folder = join(root, "packages", name);
  const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(
    join(folder, "tsconfig.json"),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: ({ messageText }) => console.error(messageText),
    },
  );
  const own = fileNames.filter((file) => file.startsWith(join(folder, "src")) && !isTest(file));
  const program = ts.createProgram(own, options);
  const checker = program.getTypeChecker();
  for (const file of own.filter((each) => !each.endsWith(added))) {
    const source = program.getSourceFile(file);
    const visit = (node) => {
      if (ts.isPropertyAccessExpression(node)) {
        const [declaration] = checker.getSymbolAtLocation(node.name)?.declarations ?? [];
        if (declaration?.getSourceFile().fileName.endsWith(added)) {
          const { line } = source.getLineAndCharacterOfPosition(node.name.getStart());
          uses.push(`${file.slice(root.length)}:${line + 1}: .${node.name.text}()`);
        }
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
}
for (const use of uses) console.log(`${use} is a further method: call the function of that name`);
process.exitCode = uses.length === 0 ? 0 : 1;
