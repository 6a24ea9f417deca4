# Golden numbers for tests/test_em_covariates.py, by R's msm. Run in this folder: Rscript msm_covariates.R
# The panel msm_covariates.csv is that of covariate_panel.py.
library(msm)

control <- list(reltol = 1e-13, maxit = 5000, fnscale = 1000)
Q <- rbind(c(0, 0.3, 0.05), c(0.2, 0, 0.15), c(0, 0, 0))
number <- function(x) format(x, digits = 12, trim = TRUE, scientific = FALSE)
vector <- function(x) paste0("[", paste(number(x), collapse = ", "), "]")
table <- function(m) paste0("[", paste(apply(m, 1, vector), collapse = ", "), "]")
data <- read.csv("msm_covariates.csv")

tell <- function(name, at, ...) {
  model <- msm(
    state ~ time, subject = data$id, data = data, qmatrix = Q, obstype = data$obstype, method = "BFGS",
    control = control, ...
  )
  ratios <- hazard.msm(model)
  text <- c(
    paste0("\"minus2loglik\": ", number(model$minus2loglik)),
    paste0("\"moves\": [", paste0("\"", rownames(ratios[[1]]), "\"", collapse = ", "), "]"),
    # hazard ratio, lower and upper bound of each move
    paste0("\"ratios\": {", paste0("\"", names(ratios), "\": ", sapply(ratios, table), collapse = ", "), "}"),
    paste0("\"generator\": ", table(qmatrix.msm(model, ci = "none", covariates = at)))
  )
  paste0("  \"", name, "\": {\n    ", paste(text, collapse = ",\n    "), "\n  }")
}
parts <- c(
  tell("all", list(sex = 1, age = 70), covariates = ~ sex + age),
  tell("shared", list(sex = 1, age = 70), covariates = ~ sex + age, constraint = list(sex = rep(1, 4), age = rep(1, 4))),
  tell("chosen", list(sex = 1, age = 70), covariates = list("1-2" = ~ age, "2-3" = ~ sex + age)),
  tell("breaks", list(sex = 1, timeperiod = "[3,6)"), covariates = ~sex, pci = c(3, 6))
)
version <- paste0("  \"made_by\": \"msm_covariates.R, msm ", packageVersion("msm"), "\"")
writeLines(paste0("{\n", paste(c(version, parts), collapse = ",\n"), "\n}"), "msm_covariates.json")
