# Golden numbers for tests/test_constraints.py, by R's msm. Run in this folder: Rscript msm_known.R
#
# The panels em_*.csv are those of msm_em.R. Rates are numbered row by row, those that are shared once.
library(msm)

control <- list(reltol = 1e-14, maxit = 20000)
number <- function(x) format(x, digits = 15, trim = TRUE, scientific = FALSE)
table <- function(m) {
  paste0("[", paste(apply(m, 1, function(r) paste0("[", paste(number(r), collapse = ", "), "]")), collapse = ", "), "]")
}

fit <- function(name, panel, q, ...) {
  data <- read.csv(paste0("em_", panel, ".csv"))
  model <- msm(state ~ time, subject = id, data = data, qmatrix = q, method = "BFGS", control = control, ...)
  text <- paste0("    \"minus2loglik\": ", number(model$minus2loglik), ",\n",
                 "    \"generator\": ", table(qmatrix.msm(model, ci = "none")))
  if (model$emodel$misc) text <- paste0(text, ",\n    \"emission\": ", table(ematrix.msm(model, ci = "none")))
  paste0("  \"", name, "\": {\n", text, "\n  }")
}

full <- rbind(c(0, 0.5, 0.5), c(0.5, 0, 0.25), c(0.5, 0.5, 0))
progressive <- rbind(c(0, 0.5, 0.1), c(0, 0, 0.5), c(0, 0, 0))
chain <- rbind(c(0, 0.5, 0), c(0.5, 0, 0.5), c(0, 0.5, 0))
neighbours <- rbind(c(0, 0.1, 0), c(0.1, 0, 0.1), c(0, 0.1, 0))
parts <- c(
  # 2 -> 3 is known; 1 -> 2 and 3 -> 2 are one, 1 -> 3, 2 -> 1 and 3 -> 1 are another
  fit("bound", "direct", full, fixedpars = 3, qconstraint = c(1, 2, 2, 3, 2, 1)),
  fit("fixed", "illness_death", progressive, fixedpars = 2),
  fit("equal", "illness_death", progressive, qconstraint = c(1, 2, 1)),
  # no symbol of a state two steps away; the first state is known to be so likely
  fit("neighbours", "misclassified", chain, ematrix = neighbours, initprobs = c(0.5, 0.3, 0.2)),
  fit("first", "misclassified", chain, ematrix = neighbours, initprobs = c(0.5, 0.5, 0))
)
version <- paste0("  \"made_by\": \"msm_known.R, msm ", packageVersion("msm"), "\"")
writeLines(paste0("{\n", paste(c(version, parts), collapse = ",\n"), "\n}"), "known_msm.json")
