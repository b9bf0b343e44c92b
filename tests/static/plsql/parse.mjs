// Reads JSON from standard input, [{"name": ..., "text": ...}, ...], parses each text as a script of
// SQL and PL/SQL units, and writes what is wrong with them: [{"name", "line", "column", "text"}, ...].
// Its one argument is the folder with the packages of package.json.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = join(process.argv[2], "node_modules");
const load = (file) => import(pathToFileURL(join(packages, file)).href);
const { PredictionMode } = await load("antlr4/dist/antlr4.node.mjs");
const { getParserFromInput } = await load("@griffithswaite/ts-plsql-parser/build/index.js");

// The fast mode of prediction accepts nothing that the exact one refuses; what it refuses is parsed
// again exactly.
const EXACT = PredictionMode.LL;
const FAST = PredictionMode.SLL;

function problemsOf(script) {
    return parsed(script, FAST).length ? parsed(script, EXACT) : [];
}

function parsed({ name, text }, mode) {
    const problems = [];
    const listener = {
        syntaxError: (_, __, line, column, message) =>
            problems.push({ name, line, column: column + 1, text: message }),
        reportAmbiguity: () => {},
        reportAttemptingFullContext: () => {},
        reportContextSensitivity: () => {},
    };
    const parser = getParserFromInput(text);
    for (const one of [parser, parser.getTokenStream().tokenSource]) {
        one.removeErrorListeners();
        one.addErrorListener(listener);
    }
    parser._interp.predictionMode = mode;
    parser.buildParseTrees = false;
    parser.sql_script();
    return problems;
}

const scripts = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(scripts.flatMap(problemsOf)));
