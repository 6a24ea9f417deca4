# Golden numbers for tests/test_em.py, by R's msm. Run in this folder: Rscript msm_em.R
#
# The panels em_*.csv were drawn by jumpmeans:
#   direct         Process([0.8, 1.2, 0.5], [[0, .7, .3], [.5, 0, .5], [.6, .4, 0]], states=[1, 2, 3])
#                  simulate(process, 60, 12, random_state=1)
#   illness_death  Process([0.4, 0.6, 0], [[0, .7, .3], [0, 0, 1], [0, 0, 0]], [1, 0, 0], states=[1, 2, 3])
#                  simulate(process, 150, 6, random_state=2)
#   misclassified  Process([0.3, 0.5, 0.4], [[0, 1, 0], [.5, 0, .5], [0, 1, 0]], emission=Categorical(
#                  [[.9, .08, .02], [.1, .8, .1], [.03, .07, .9]], symbols=[1, 2, 3]))
#                  simulate(process, 150, 15, mean_gap=0.5, random_state=3)
library(msm)

control <- list(reltol = 1e-12, maxit = 20000, fnscale = 1000)
number <- function(x) format(x, digits = 15, trim = TRUE, scientific = FALSE)
table <- function(m) {
  paste0("[", paste(apply(m, 1, function(r) paste0("[", paste(number(r), collapse = ", "), "]")), collapse = ", "), "]")
}

fit <- function(name, allowed, ...) {
  data <- read.csv(paste0("em_", name, ".csv"))
  q <- allowed * 0.5
  model <- msm(state ~ time, subject = id, data = data, qmatrix = q, method = "BFGS", control = control, ...)
  text <- paste0("    \"minus2loglik\": ", number(model$minus2loglik), ",\n",
                 "    \"converged\": ", tolower(model$opt$convergence == 0), ",\n",
                 "    \"generator\": ", table(qmatrix.msm(model, ci = "none")))
  if (model$emodel$misc) {
    text <- paste0(text, ",\n    \"emission\": ", table(ematrix.msm(model, ci = "none")),
                   ",\n    \"initial\": ", table(rbind(model$hmodel$initprobs[, 1])))
  }
  paste0("  \"", name, "\": {\n", text, "\n  }")
}

full <- 1 - diag(3)
progressive <- rbind(c(0, 1, 1), c(0, 0, 1), c(0, 0, 0))
chain <- rbind(c(0, 1, 0), c(1, 0, 1), c(0, 1, 0))
misread <- rbind(c(0, 0.1, 0.1), c(0.1, 0, 0.1), c(0.1, 0.1, 0))
parts <- c(
  fit("direct", full),
  fit("illness_death", progressive),
  fit("misclassified", chain, ematrix = misread, est.initprobs = TRUE, initprobs = rep(1, 3) / 3)
)
version <- paste0("  \"made_by\": \"msm_em.R, msm ", packageVersion("msm"), "\"")
writeLines(paste0("{\n", paste(c(version, parts), collapse = ",\n"), "\n}"), "em_msm.json")
